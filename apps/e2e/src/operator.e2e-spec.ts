import { beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { call, createTeam, succeed, until, type Refusal, type TeamView } from './client.js';
import { createNode } from './gpu-inventory.js';
import { aSubscription, aSwitch } from './killed-gpus.js';
import { aHost, anExposedService, aPod, aVm } from './killed-pods.js';
import { killedTogether, MortalPlatform } from './mortal-platform.js';

/** One platform for what its operator meets: processes that are frozen or die, and what is left undone. */
const mortal = new MortalPlatform();
const { operated, topology } = mortal;
/**
 * Longer than PostgreSQL leaves a transaction idle (20 s), and between processes than JetStream waits for an
 * acknowledgement (30 s).
 */
const frozenForMs = topology === 'services' ? 40_000 : 25_000;

interface Letter {
  service: string;
  dead_letter_id: string;
  event_name: string;
  error: string;
  tries: number;
  replay_requested_at: string | null;
}

interface Letters {
  data: Letter[];
  services: { service: string; status: string }[];
  next_cursor: string | null;
}

beforeAll(() => mortal.start());

const access = () => ({ url: operated.url, key: operated.adminKey });
/** Of all services: one that answers too late is left out, and said to be. */
const areAllOk = ({ services }: Pick<Letters, 'services'>) => services.every(({ status }) => status === 'ok');
const letters = (query = '') =>
  until(() => succeed<Letters>('GET', `/operator/dead-letters${query}`, access()), areAllOk);

const count = async (from: string) =>
  (await mortal.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${from}`))[0]?.count;

/** The first of these stories: no service has a dead letter yet. */
it('a service whose process is frozen for longer than anything waits for it takes every event once it goes on, and none becomes a dead letter', async () => {
  // All of the platform where it is one process, else the service that consumes.
  const pid =
    topology === 'services'
      ? Number(/billing: process (\d+)/.exec(mortal.running.output())?.[1])
      : mortal.running.process.pid!;
  const createTeams = async (name: string) => {
    for (let at = 0; at < 40; at += 1) await succeed('POST', '/team', { ...access(), body: { name: `${name} ${at}` } });
  };
  await createTeams('Before');
  process.kill(pid, 'SIGSTOP');
  try {
    if (topology === 'services') await createTeams('Meanwhile');
    await delay(frozenForMs);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  const teams = await count('teams.team');
  for (const service of ['billing', 'gpuaas']) {
    await until(
      () => count(`${service}.team WHERE revision > 0`),
      (known) => known === teams,
    );
  }
  for (const service of ['teams', 'billing', 'gpuaas']) expect(await count(`${service}.dead_letter`)).toBe(0);
});

/** What other services tell: here a line in the outbox stands for them. */
describe('what others tell of a team', () => {
  const tell = (payload: object) =>
    mortal.query(
      `INSERT INTO gpuaas.outbox (id, event_name, payload) VALUES ($1, 'gpuaas.team_capacity_changed', $2)`,
      [randomUUID(), JSON.stringify(payload)],
    );

  async function run(...args: string[]): Promise<{ code: number; output: string }> {
    const env = { ...process.env, DATABASE_URL: mortal.databaseUrl, ATOLL_KEY_PEPPER: 'a pepper of the spec' };
    const child = spawn(process.execPath, ['dist/apps/platform/src/dead-letters.js', ...args], { env });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    return { code, output };
  }

  it('shows in the team and in the profile of its people', async () => {
    const { id } = await succeed<TeamView>('POST', '/team', { ...access(), body: { name: 'Holders' } });
    await tell({ team_id: id, revision: 2, gpu_ids: [7, 8, 9], has_pool_subscription: true });
    await tell({ team_id: id, revision: 1, gpu_ids: [], has_pool_subscription: false });
    await until(
      () => succeed<TeamView>('GET', `/team/${id}`, access()),
      (team) => team.has_pool_subscription,
    );
    expect(await succeed('GET', '/user/profile', access())).toMatchObject({ card_count: 3 });
    expect(await call('DELETE', `/team/${id}`, access())).toMatchObject({ status: 409, body: { code: 'conflict' } });
  });

  // Between processes each has its figures at a port of its own.
  if (topology === 'one-process') {
    it('waits among the dead letters where it cannot be read, and is handled by hand once that is mended', async () => {
      const { id } = await succeed<TeamView>('POST', '/team', { ...access(), body: { name: 'Patient' } });
      await tell({ team_id: id, revision: 0, gpu_ids: [7], has_pool_subscription: true });
      const figures = async () => (await fetch(`${operated.url}/metrics`)).text();
      await until(figures, (text) => text.includes('atoll_dead_letters{service="teams"} 1'));
      const { output } = await run();
      const [, letter = ''] = /^teams (\S+) gpuaas\.team_capacity_changed → .*revision/m.exec(output) ?? [];
      expect(await run('retry', 'teams', letter)).toMatchObject({
        code: 1,
        output: expect.stringContaining('failed again'),
      });

      await mortal.query(`UPDATE teams.dead_letter SET payload = payload || '{"revision": 1}'`);
      expect(await run('retry', 'teams', letter)).toEqual({ code: 0, output: 'Handled.\n' });
      expect(await succeed('GET', `/team/${id}`, access())).toMatchObject({ has_pool_subscription: true });
      expect(await run()).toEqual({ code: 0, output: expect.stringMatching(/^(\w+: none\n){3,}$/) });
      await until(figures, (text) => text.includes('atoll_dead_letters{service="teams"} 0'));
    });

    it('dead letters are not asked for by what is no id', async () => {
      const id = '-'.repeat(36);
      expect(await run('retry', 'teams', id)).toEqual({
        code: 1,
        output: `The command failed: "${id}" is not the id of a dead letter. Usage: npm run dead-letters [-- retry SERVICE ID]\n`,
      });
    });

    it('dead letters are not listed by an older release, not even those of services that come before the changed one', async () => {
      await mortal.query(`INSERT INTO pods.migration (timestamp, name) VALUES (0, 'OfALaterRelease')`);
      const told = await run();
      await mortal.query(`DELETE FROM pods.migration WHERE name = 'OfALaterRelease'`);
      expect(told).toEqual({
        code: 1,
        output: expect.stringMatching(/^The command failed: The schema pods is newer .* OfALaterRelease\..*\n$/),
      });
    });
  }
});

/** What a service leaves when it cannot take an event. */
async function deadLetter(service: string, payload: object): Promise<string> {
  const id = randomUUID();
  await mortal.query(
    `INSERT INTO ${service}.dead_letter (id, consumer, event_id, event_name, payload, occurred_at, last_error, tries, first_failed_at, last_failed_at)
     VALUES ($1, 'team-directory', $2, 'teams.team_changed', $3, now(), 'Error: the disk was full', 5, now(), now())`,
    [id, randomUUID(), JSON.stringify(payload)],
  );
  return id;
}

const aTeam = () => ({
  team_id: randomUUID(),
  revision: 1,
  name: 'Undelivered',
  is_suspended: false,
  status: 'active',
  workspaces: [],
});

describe('what the operator sees of all services', () => {
  it('dead letters are listed with their reason, handled when they are replayed, kept when they fail again, and dropped', async () => {
    const team = aTeam();
    const mended = await deadLetter('billing', team);
    const broken = await deadLetter('gpuaas', { nonsense: true });
    const dropped = await deadLetter('teams', aTeam());
    const all = await letters();
    expect(all.services.map(({ service, status }) => `${service} ${status}`)).toEqual([
      'teams ok',
      'billing ok',
      'gpuaas ok',
      'pods ok',
    ]);
    expect(all.data.map(({ dead_letter_id }) => dead_letter_id)).toEqual([dropped, broken, mended]);
    expect(all.data[0]).toMatchObject({
      service: 'teams',
      event_name: 'teams.team_changed',
      error: 'Error: the disk was full',
      tries: 5,
    });
    const paged: string[] = [];
    for (let next: string | null = ''; next !== null;) {
      const page = await letters(`?limit=1${next && `&cursor=${next}`}`);
      paged.push(...page.data.map(({ dead_letter_id }) => dead_letter_id));
      next = page.next_cursor;
    }
    expect(paged).toEqual([dropped, broken, mended]);

    const replay = (service: string, id: string) =>
      call<Letter>('POST', `/operator/dead-letters/${service}/${id}/replay`, access());
    expect((await replay('billing', mended)).status).toBe(202);
    expect((await replay('gpuaas', broken)).status).toBe(202);
    await until(
      () => letters(),
      ({ data }) =>
        !data.some(
          ({ dead_letter_id, tries }) => dead_letter_id === mended || (dead_letter_id === broken && tries === 5),
        ),
    );
    expect(await mortal.query('SELECT name FROM billing.team WHERE id = $1', [team.team_id])).toEqual([
      { name: 'Undelivered' },
    ]);
    expect((await letters('?service=gpuaas')).data).toMatchObject([
      { dead_letter_id: broken, tries: 6, replay_requested_at: null },
    ]);

    expect((await call('DELETE', `/operator/dead-letters/teams/${dropped}`, access())).status).toBe(204);
    expect((await call('DELETE', `/operator/dead-letters/teams/${dropped}`, access())).status).toBe(404);
    expect((await letters('?service=teams')).data).toEqual([]);
    expect((await replay('pods', broken)).status).toBe(404);
  });

  it('a node that did not come up is counted among what has failed, and listed with its reason', async () => {
    const node = await createNode({ name: 'gpu-07.init-refuse', platform: operated });
    await until(node.read, ({ status }) => status === 'init_failed');
    interface Machines extends Pick<Letters, 'services'> {
      data: { machine: string; state: string; kind: string; count: number }[];
    }
    const { data } = await until(() => succeed<Machines>('GET', '/operator/machines', access()), areAllOk);
    expect(data).toContainEqual(
      expect.objectContaining({ service: 'gpuaas', machine: 'node', state: 'init_failed', kind: 'failed', count: 1 }),
    );
    const listed = await succeed<{ data: object[]; pagination: object }>(
      'GET',
      '/operator/machines/gpuaas/node?kind=failed',
      access(),
    );
    expect(listed.data).toMatchObject([
      { key: node.nodeId, state: 'init_failed', error: { message: expect.stringMatching(/\w/) } },
    ]);
    expect((await call('GET', '/operator/machines/gpuaas/lighthouse?kind=failed', access())).status).toBe(404);
    expect((await call('GET', '/operator/machines/gpuaas/node', access())).status).toBe(400);
  });

  it('is nobody else’s, whatever their role is in a team', async () => {
    const id = await deadLetter('billing', aTeam());
    const team = await createTeam('Curious', ['team_owner', 'viewer'], operated);
    const paths = [
      'GET /operator/machines',
      'GET /operator/machines/gpuaas/node?kind=failed',
      'GET /operator/dead-letters',
      `POST /operator/dead-letters/billing/${id}/replay`,
      `DELETE /operator/dead-letters/billing/${id}`,
    ];
    for (const path of paths) {
      const [method = '', url = ''] = path.split(' ');
      for (const key of Object.values(team.keys)) {
        const { status, body } = await call<Refusal>(method, url, { url: operated.url, key });
        expect([path, status, body.code]).toEqual([path, 403, 'forbidden']);
      }
      expect((await call(method, url, { url: operated.url })).status).toBe(401);
    }
    expect((await letters('?service=billing')).data).toHaveLength(1);
  });
});

const gpus = [aSubscription, aSwitch];
/** In one process they die together. */
const deaths =
  topology === 'services'
    ? [
        { victim: 'pods' as const, what: 'a pod, an exposed service and a VM', stories: [aPod, anExposedService, aVm] },
        { victim: 'gpuaas' as const, what: 'a pod, a bare-metal host, and GPUs', stories: [aPod, aHost, ...gpus] },
      ]
    : [
        {
          victim: 'pods' as const,
          what: 'a pod, an exposed service, a VM, a bare-metal host, and GPUs',
          stories: [aPod, anExposedService, aVm, aHost, ...gpus],
        },
      ];

/** The last of these stories: whatever is kept between calls begins anew with each death. */
it.each(deaths)('what $victim does when it dies ends as it was to: $what', async ({ victim, stories }) => {
  const dies = killedTogether(stories.length, () => mortal.kill(victim));
  await Promise.all(stories.map((story) => story(mortal, dies)));
});
