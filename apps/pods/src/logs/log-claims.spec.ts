import { Statements } from '@atoll/database';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { LogClaims } from './log-claims.js';
import { LogsFixture } from './logs-fixture.js';
import { setTimeout as delay } from 'node:timers/promises';

/** More than one statement claims, of which no replica reads so many. */
const podCount = 1_500;
const newest = 'ffffffff-ffff-7fff-8fff-ffffffffffff';
const lives = 'SELECT FROM log_reader WHERE id = $1 AND alive_until > clock_timestamp()';

let fixture: LogsFixture;
let replicas: LogClaims[];
beforeAll(async () => {
  fixture = await LogsFixture.start();
  const claims = () => new LogClaims(fixture.get(Statements));
  replicas = [claims(), claims(), claims()];
  await live(replicas);
  await write(`SELECT lpad(number::text, 32, '0')::uuid FROM generate_series(1, ${podCount}) number`);
  const first = claims();
  for (const reading: number[] = []; reading.length < podCount;)
    reading.push(...(await first.claimRuns(reading)).map(({ source }) => source.no));
  await first.claimRuns(await readingOf(first));
  await fixture.query('UPDATE log_source SET reader_id = ($1::uuid[])[1 + no % 3]', [
    replicas.map(({ readerId }) => readerId),
  ]);
  await write(`SELECT '${newest}'::uuid`);
});
afterAll(() => fixture.stop());

/** They show up, and no other takes over from them however long the spec takes. */
async function live(these: readonly LogClaims[]): Promise<void> {
  for (const replica of these) await replica.beAlive();
  await fixture.query(`UPDATE log_reader SET alive_until = 'infinity' WHERE id = ANY ($1)`, [
    these.map(({ readerId }) => readerId),
  ]);
}

/** Pods that run, each with a line of the platform that is not stored yet. */
async function write(podIds: string): Promise<void> {
  await fixture.query(
    `WITH written AS (
       INSERT INTO pod (pod_id, pod_name, name, team_id, workspace_id, subscription_id, gpuaas_id, region_id, profile, image, vgpus, command, ports,
         volumes, restart, start, run, state, entered_at)
       SELECT id, 'pod-' || id, 'pod', $1, $1, 1, 1, 1, '1g.10gb', 'busybox', 1, '[]', '[]', '[]', 'always', 1, 1, 'stopped', now()
       FROM (${podIds}) pods (id) RETURNING pod_id, run, gpuaas_id
     ), runs AS (INSERT INTO pod_run (pod_id, run, gpuaas_id) SELECT pod_id, run, gpuaas_id FROM written)
     INSERT INTO platform_line (pod_id, message) SELECT pod_id, 'The pod stops.' FROM written`,
    [fixture.team()],
  );
}

async function readingOf({ readerId }: LogClaims): Promise<number[]> {
  const rows = await fixture.query<{ no: number }>(
    'SELECT no FROM log_source WHERE reader_id = $1 AND NOT is_platform',
    [readerId],
  );
  return rows.map(({ no }) => no);
}

it('the newest pod is read, by one replica, however many pods others read', async () => {
  const found = await Promise.all(replicas.map(async (replica) => replica.claimRuns(await readingOf(replica))));
  expect(found.flat().map(({ podId }) => podId)).toEqual([newest]);
});

it('lines of the platform about the newest pod are stored by one replica, however many there are about others', async () => {
  const found = await Promise.all(replicas.map((replica) => replica.claimPlatformLines([])));
  const podIds = found.flat().map(({ podId }) => podId);
  expect(podIds.filter((podId) => podId === newest)).toHaveLength(1);
  expect(podIds).toHaveLength(podCount + 1);
});

it('a round asks for what is new alone, however many pods are read: for all others only where a replica has come or gone', async () => {
  await fixture.query('DELETE FROM platform_line');
  await fixture.query('ANALYZE pod_run, log_source, platform_line');
  const [own = new LogClaims(fixture.get(Statements)), leaving = own] = replicas;
  const living = new Set(replicas);
  const [nowMs, clock] = [performance.now(), jest.spyOn(performance, 'now')];
  const look = async (offsetMs: number, ended: readonly number[] = []) => {
    clock.mockReturnValue(nowMs + offsetMs);
    await live([...living]);
    const reading = (await readingOf(own)).filter((no) => !ended.includes(no));
    let taken: number[] = [];
    const sent = await allStatementsDuring(
      async () => (taken = (await own.claimRuns(reading)).map(({ source }) => source.no)),
    );
    const asked = sent.filter(({ text }) => /\bFROM pod_run\b/.test(text));
    expect(asked).toHaveLength(2);
    const most = Math.max(...(await Promise.all(asked.map((one) => mostRowsRead(fixture, one)))));
    return { isAll: most >= podCount, taken: taken.toSorted() };
  };
  await look(0);
  expect(await look(30_000)).toEqual({ isAll: false, taken: [] });
  const left = (await readingOf(leaving)).toSorted();
  if (living.delete(leaving)) await leaving.release();
  // The clock may have been set back meanwhile.
  while ((await fixture.query(lives, [leaving.readerId])).length > 0) await delay(5);
  expect(await look(30_000)).toEqual({ isAll: true, taken: left });
  expect(await look(40_000)).toEqual({ isAll: false, taken: [] });
  // As after an error of its cluster.
  expect(await look(40_000, left.slice(0, 2))).toEqual({ isAll: false, taken: left.slice(0, 2) });
  jest.restoreAllMocks();
});
