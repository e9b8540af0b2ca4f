import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { clusters } from '@atoll/contracts/gpuaas';
import { allStatementsDuring, mostRowsRead, onOtherClock, timeoutFactor } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { GpuaasFixture } from '../gpuaas-fixture.js';
import { GpuaasSettings } from '../gpuaas-settings.js';
import { ClusterChecks } from './cluster-checks.js';
import { aGpuaas, makeDue, roundOf, toldOf } from './cluster-fixture.js';
import { EngineFixture } from './engine-fixture.js';

/** Of connections to the database, as pg has it. */
interface Pool {
  readonly options: { readonly max: number };
  readonly totalCount: number;
  readonly idleCount: number;
  connect(): Promise<{ release(): void }>;
}

const patienceMs = 1_500 * timeoutFactor;
const checksAtOnce = 8;
let engine: EngineFixture;
let fixture: GpuaasFixture;
beforeAll(async () => {
  engine = await EngineFixture.start();
  fixture = await GpuaasFixture.start({
    dockerSockets: engine.socket,
    clusterPatienceMs: patienceMs,
    clusterChecks: checksAtOnce,
  });
});
afterAll(async () => {
  await fixture?.stop();
  await engine?.stop();
});

const gpuaas = () => aGpuaas(fixture);
const set = (gpuaas_id: string) => fixture.call(clusters.set, { gpuaas_id, driver: 'docker', socket: engine.socket });
const told = async (gpuaasId: string) => (await toldOf(fixture, gpuaasId)).map(({ is_unreachable }) => is_unreachable);
const round = (...gpuaasIds: string[]) => roundOf(fixture, ...gpuaasIds);

describe('a cluster that was well and misses a check', () => {
  const known = async (gpuaasId: string) =>
    (await fixture.query('SELECT has_missed, status FROM cluster WHERE gpuaas_id = $1', [gpuaasId]))[0];
  const [well, missed] = [
    { has_missed: false, status: 'ok' },
    { has_missed: true, status: 'ok' },
  ];

  it.each(['hangs', 'hangs up'] as const)(
    'is asked again soon before new pods are refused: one that %s once is not away',
    async (mode) => {
      const gpuaas_id = await gpuaas();
      await set(gpuaas_id);
      engine.once = mode;
      await round(gpuaas_id);
      expect([engine.once, await known(gpuaas_id)]).toEqual([undefined, missed]);
      const soon = `SELECT FROM cluster WHERE gpuaas_id = $1 AND next_check_at < clock_timestamp() + interval '5 seconds'`;
      expect(await fixture.query(soon, [gpuaas_id])).toHaveLength(1);
      await round(gpuaas_id);
      expect([await known(gpuaas_id), await told(gpuaas_id)]).toEqual([well, [false, false]]);
    },
  );

  it('is unreachable when it misses the second too', async () => {
    const gpuaas_id = await gpuaas();
    await set(gpuaas_id);
    engine.mode = 'hangs';
    await round(gpuaas_id);
    expect(await known(gpuaas_id)).toEqual(missed);
    await round(gpuaas_id);
    engine.mode = 'answers';
    expect([await known(gpuaas_id), await told(gpuaas_id)]).toEqual([
      { has_missed: false, status: 'unreachable' },
      [false, false, true],
    ]);
    const checks = `SELECT FROM cluster WHERE gpuaas_id = $1 AND strpos(checks::text, 'The engine does not answer.') > 0`;
    expect(await fixture.query(checks, [gpuaas_id])).toHaveLength(1);
  });

  it('is unreachable at once where another engine answers in its place', async () => {
    const gpuaas_id = await gpuaas();
    await set(gpuaas_id);
    const { id } = engine;
    engine.id = 'another';
    await round(gpuaas_id);
    engine.id = id;
    expect(await known(gpuaas_id)).toEqual({ has_missed: false, status: 'unreachable' });
  });

  it('comes back though it takes as long to answer as only the second look waits', async () => {
    const gpuaas_id = await gpuaas();
    await set(gpuaas_id);
    engine.mode = 'hangs';
    await round(gpuaas_id);
    await round(gpuaas_id);
    Object.assign(engine, { mode: 'answers', once: 'is late', lateMs: patienceMs + 100 });
    await round(gpuaas_id);
    expect(await known(gpuaas_id)).toEqual(well);
  });

  it('has twice the time to answer the second', async () => {
    const gpuaas_id = await gpuaas();
    await set(gpuaas_id);
    engine.lateMs = patienceMs + 100;
    for (const found of [missed, well]) {
      engine.once = 'is late';
      await round(gpuaas_id);
      expect(await known(gpuaas_id)).toEqual(found);
    }
  });

  it('has twice the time for an operator’s check, too, where it answered and was of no use', async () => {
    const gpuaas_id = await gpuaas();
    await set(gpuaas_id);
    const { id } = engine;
    engine.id = 'another';
    expect((await fixture.call(clusters.check, { gpuaas_id })).status).toBe('unreachable');
    Object.assign(engine, { id, once: 'is late', lateMs: patienceMs + 100 });
    expect((await fixture.call(clusters.check, { gpuaas_id })).status).toBe('ok');
  });

  it.each(['check', 'set'] as const)('has missed none any more when an operator’s %s finds it well', async (how) => {
    const gpuaas_id = await gpuaas();
    await set(gpuaas_id);
    engine.once = 'hangs';
    await round(gpuaas_id);
    await (how === 'set' ? set(gpuaas_id) : fixture.call(clusters.check, { gpuaas_id }));
    expect(await known(gpuaas_id)).toEqual(well);
  });
});

describe('checks', () => {
  it.each([-3_600_000, 3_600_000])(
    'are a minute apart by the clock of the database, where that of the process is %i ms off',
    async (offMs) => {
      const gpuaas_id = await gpuaas();
      await onOtherClock(offMs, async () => {
        const dueIn = `SELECT next_check_at - clock_timestamp() BETWEEN $2::interval AND $3::interval AS so FROM cluster WHERE gpuaas_id = $1`;
        await set(gpuaas_id);
        expect(await fixture.query(dueIn, [gpuaas_id, '30 seconds', '60 seconds'])).toEqual([{ so: true }]);
        engine.once = 'hangs up';
        await round(gpuaas_id);
        expect(await fixture.query(dueIn, [gpuaas_id, '-1 minute', '5 seconds'])).toEqual([{ so: true }]);
        // One that nobody has set is due at once.
        expect(await fixture.query(dueIn, [await gpuaas(), '-1 minute', '0'])).toEqual([{ so: true }]);
      });
    },
  );

  it('go on while requests hold all of their connections to the database, and take none of them', async () => {
    const gpuaas_id = await gpuaas();
    await set(gpuaas_id);
    await makeDue(fixture, gpuaas_id);
    const { master: pool } = fixture.get(DataSource).driver as unknown as { master: Pool };
    const taken: Awaited<ReturnType<Pool['connect']>>[] = [];
    while (pool.totalCount - pool.idleCount < pool.options.max) taken.push(await pool.connect());
    engine.hasDoorImage = false;
    await fixture.get(ClusterChecks).round();
    await fixture.get(ClusterChecks).settled();
    engine.hasDoorImage = true;
    for (const client of taken) client.release();
    expect(taken.length).toBeGreaterThan(8);
    expect((await fixture.call(clusters.get, { gpuaas_id })).status).toBe('degraded');
  });

  describe('that end when something else has become known', () => {
    const checks = () => fixture.get(ClusterChecks);
    const shown = async (gpuaas_id: string) => [
      await fixture.query(
        'SELECT status, has_missed, checks, next_check_at, revision FROM cluster WHERE gpuaas_id = $1',
        [gpuaas_id],
      ),
      await told(gpuaas_id),
    ];
    /** Begins a round, which looks at this cluster alone until the engine answers or hangs up. */
    const roundThatHangs = async (gpuaas_id: string): Promise<void> => {
      engine.once = 'hangs';
      await makeDue(fixture, gpuaas_id);
      await checks().round();
      await until(() => engine.once === undefined);
    };
    beforeAll(() => void (fixture.get(GpuaasSettings).clusterPatienceMs = 3_600_000));
    afterAll(() => void (fixture.get(GpuaasSettings).clusterPatienceMs = patienceMs));

    it.each([
      ['misses the cluster for the first time', false],
      ['finds the cluster unreachable', true],
    ])('show what a later one found, though the one that began first %s', async (_, has_missed) => {
      const gpuaas_id = await gpuaas();
      await set(gpuaas_id);
      await fixture.query('UPDATE cluster SET has_missed = $2 WHERE gpuaas_id = $1', [gpuaas_id, has_missed]);
      await roundThatHangs(gpuaas_id);
      expect((await fixture.call(clusters.check, { gpuaas_id })).status).toBe('ok');
      const before = await shown(gpuaas_id);
      engine.hangUp();
      await checks().settled();
      expect(await shown(gpuaas_id)).toEqual(before);
    });

    it.each([
      ['for the first time', false],
      ['again', true],
    ])('say nothing of a cluster that is set anew meanwhile, where they miss it %s', async (_, has_missed) => {
      const gpuaas_id = await gpuaas();
      await set(gpuaas_id);
      await fixture.query('UPDATE cluster SET has_missed = $2 WHERE gpuaas_id = $1', [gpuaas_id, has_missed]);
      await roundThatHangs(gpuaas_id);
      // As `set` stores it, before its own check has ended.
      await fixture.query('UPDATE cluster SET setting = setting + 1, has_missed = false WHERE gpuaas_id = $1', [
        gpuaas_id,
      ]);
      const before = await shown(gpuaas_id);
      engine.hangUp();
      await checks().settled();
      expect(await shown(gpuaas_id)).toEqual(before);
    });

    it('show what a later one found, though the one that began first finds the cluster well', async () => {
      const gpuaas_id = await gpuaas();
      await set(gpuaas_id);
      engine.once = 'hangs';
      const first = fixture.call(clusters.check, { gpuaas_id });
      await until(() => engine.once === undefined);
      engine.once = 'hangs up';
      await round(gpuaas_id);
      const before = await shown(gpuaas_id);
      engine.answerHanging();
      await first;
      expect(await shown(gpuaas_id)).toEqual(before);
      expect(before).toMatchObject([[{ status: 'ok', has_missed: true }], [false, false]]);
    });
  });

  it('of many clusters that hang at once are bounded, and take turns until each has had its own', async () => {
    const settings = fixture.get(GpuaasSettings);
    const { clusterAgainMs } = settings;
    // Nothing answers, however long it is waited for; one that is missed is not due again in the same round.
    Object.assign(settings, { clusterPatienceMs: 300, clusterAgainMs: 3_600_000 });
    const silent = await startSilent();
    const hanging = await hangingAt(silent.socket, 'ok');
    const count = `SELECT status, has_missed, count(*)::int FROM cluster WHERE gpuaas_id = ANY ($1::bigint[]) GROUP BY 1, 2`;
    const found = () => fixture.query(count, [hanging]);
    await round(...hanging);
    expect(await found()).toEqual([{ status: 'ok', has_missed: true, count: 20 }]);
    await round(...hanging);
    expect(await found()).toEqual([{ status: 'unreachable', has_missed: false, count: 20 }]);
    expect(silent.most()).toBeGreaterThan(1);
    expect(silent.most()).toBeLessThanOrEqual(checksAtOnce);
    Object.assign(settings, { clusterPatienceMs: patienceMs, clusterAgainMs });
    await silent.stop();
  });

  it('of clusters that answer go on while those that are unreachable hang, however many and however long', async () => {
    const settings = fixture.get(GpuaasSettings);
    const well = await gpuaas();
    await set(well);
    settings.clusterPatienceMs = 3_600_000;
    const silent = await startSilent();
    await makeDue(fixture, ...(await hangingAt(silent.socket, 'unreachable')));
    await fixture.get(ClusterChecks).round();
    await until(() => silent.most() === checksAtOnce / 2);
    await makeDue(fixture, well);
    engine.hasDoorImage = false;
    await fixture.get(ClusterChecks).round();
    await until(async () => (await fixture.call(clusters.get, { gpuaas_id: well })).status === 'degraded');
    expect(silent.most()).toBe(checksAtOnce / 2);
    engine.hasDoorImage = true;
    settings.clusterPatienceMs = patienceMs;
    await silent.stop();
    await fixture.get(ClusterChecks).settled();
  });
});

it('clusters that are not due are not read by each look for those that are', async () => {
  const one = await gpuaas();
  await fixture.query(
    `WITH made AS (INSERT INTO gpuaas (region_id, name) SELECT region_id, 'later-' || n FROM gpuaas, generate_series(1, 5000) n WHERE gpuaas_id = $1 RETURNING gpuaas_id)
     INSERT INTO cluster (gpuaas_id, driver, public_host, socket, setting, revision, status, checks, next_check_at)
     SELECT gpuaas_id, 'docker', 'host', $2, 1, 1, 'ok', '[]', clock_timestamp() + interval '1 hour' FROM made`,
    [one, engine.socket],
  );
  await fixture.query('VACUUM ANALYZE cluster');
  const checks = fixture.get(ClusterChecks);
  const sent = await allStatementsDuring(() => checks.round().then(() => checks.settled()));
  const looks = sent.filter(({ text }) => text.includes('next_check_at <='));
  expect(looks.length).toBeGreaterThanOrEqual(2);
  for (const look of looks) expect(await mostRowsRead(fixture, look)).toBeLessThan(100);
});

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await delay(10);
}

/** 20 clusters whose engines listen at this socket. */
async function hangingAt(socket: string, status: 'ok' | 'unreachable'): Promise<string[]> {
  const hanging: string[] = [];
  for (let count = 0; count < 20; count += 1) hanging.push(await gpuaas());
  const hang = `UPDATE cluster SET driver = 'docker', socket = $1, status = $2, since = clock_timestamp() WHERE gpuaas_id = ANY ($3::bigint[])`;
  await fixture.query(hang, [socket, status, hanging]);
  return hanging;
}

/** Takes connections and says nothing. */
async function startSilent() {
  let [open, most] = [0, 0];
  const held = new Set<Socket>();
  const server = createServer((socket) => {
    held.add(socket.on('error', () => undefined).on('close', () => (open -= 1)));
    socket.resume();
    most = Math.max(most, (open += 1));
  });
  const folder = await mkdtemp(join(tmpdir(), 'atoll-silent-'));
  const socket = join(folder, 'silent.sock');
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  const stop = async (): Promise<void> => {
    for (const each of held) each.destroy();
    await new Promise((resolve) => server.close(resolve));
    await rm(folder, { recursive: true });
  };
  return { socket, most: () => most, stop };
}
