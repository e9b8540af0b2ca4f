import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { connections, type Connection, type ConnectionPod } from '@atoll/contracts/gpuaas';
import { vmChanged } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { errorOf, GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';
import { ConnectionSource } from './connection-source.js';
import { EndedConnections } from './ended-connections.js';

type Pods = Map<string, ConnectionPod[]>;

/** A read of the source that a spec has yet to answer. */
interface Question {
  teamId: string;
  subscriptionIds: readonly string[];
  answer(pods: Pods): void;
  fail(): void;
}

/** Answers when, and as, a spec says. */
class Source extends ConnectionSource {
  readonly questions: Question[] = [];

  read(teamId: string, subscriptionIds: readonly string[], signal: AbortSignal): Promise<Pods> {
    return new Promise((resolve, reject) => {
      const fail = () => reject(new Error('The source is down.'));
      signal.addEventListener('abort', fail);
      this.questions.push({ teamId, subscriptionIds, answer: resolve, fail });
    });
  }
}

const source = new Source();
let fixture: GpuaasFixture;
let team: ToldTeam;
let pool: Inventory & { pool_id: string; pool_name: string };
let held: { subscription_id: string };

beforeAll(async () => {
  fixture = await GpuaasFixture.start({ connections: source });
});
beforeEach(async () => {
  team = await fixture.team();
  pool = await fixture.pool({ mechanism: 'mps', replicas: 8 });
  held = await fixture.subscribe(team, { pool_id: pool.pool_id });
  await fixture.settle();
  source.questions.splice(0);
});
afterAll(() => fixture.stop());

const read = async (more: object = {}, caller = team.member) =>
  (await fixture.call(connections.read, { team_id: team.team_id, ...more }, caller)).data;
const refresh = (more: object = {}, caller = team.member) =>
  fixture.call(connections.refresh, { team_id: team.team_id, ...more }, caller);
const idsOf = (list: readonly Connection[]) => list.map(({ subscription_id }) => subscription_id);
const aPod = (pod_name: string, ...services: string[]): ConnectionPod => ({
  pod_name,
  status: 'running',
  ssh: { host: 'gpu-01', port: 30_122, username: 'atoll', command: 'ssh -p 30122 atoll@gpu-01' },
  services: services.map((service_name, at) => ({
    service_id: String(at + 1),
    service_name,
    url: 'http://gpu-01:30111',
  })),
});

/** The next question that the source is asked. */
async function asked(): Promise<Question> {
  while (source.questions.length === 0) await delay(5);
  return source.questions.shift()!;
}

/** No refresh of the team is under way any more. */
async function ended(): Promise<void> {
  const underWay = 'SELECT FROM connection_refresh WHERE team_id = $1 AND ended_at IS NULL';
  while ((await fixture.query(underWay, [team.team_id])).length > 0) await delay(10);
}

async function refreshed(pods: ConnectionPod[], of = held): Promise<void> {
  await refresh();
  (await asked()).answer(new Map([[of.subscription_id, pods]]));
  await ended();
}

describe('connection information', () => {
  it('is, before any refresh, each subscription without pods', async () => {
    expect(await read()).toEqual([
      {
        subscription_id: held.subscription_id,
        pool_name: pool.pool_name,
        gpuaas_id: pool.gpuaas_id,
        region_id: expect.stringMatching(/^\d+$/),
        pods: [],
        refreshed_at: null,
        stale: false,
      },
    ]);
  });

  it('is after a refresh what the source said, and when that was', async () => {
    const pods = [aPod('notebook-abcde', 'jupyter'), { ...aPod('train-fghij'), ssh: null }];
    const before = Date.now();
    await refreshed(pods);
    const [connection] = await read();
    expect(connection).toMatchObject({ pods, stale: false, refreshed_at: expect.stringMatching(/\.\d{3}Z$/) });
    // The database's clock and this one are one machine's.
    expect(new Date(connection?.refreshed_at ?? 0).getTime()).toBeGreaterThanOrEqual(before);
    await refreshed([]);
    expect(await read()).toMatchObject([{ pods: [], stale: false }]);
  });

  it('is of what has not ended, in the order it was made, of one GPU service where asked, in pages where limit is sent', async () => {
    const other = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    const ids = [held.subscription_id];
    for (const { pool_id } of [other, pool, other])
      ids.push((await fixture.subscribe(team, { pool_id })).subscription_id);
    expect(idsOf(await read())).toEqual(ids);
    expect(idsOf(await read({ gpuaas_id: other.gpuaas_id }))).toEqual([ids[1], ids[3]]);
    const page = await fixture.call(connections.read, { team_id: team.team_id, limit: 3, page: 2 }, team.member);
    expect([idsOf(page.data), page.pagination]).toEqual([[ids[3]], { page: 2, limit: 3, total: 4 }]);
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    expect(idsOf(await read())).toEqual(ids.slice(1));
  });

  it('goes with its subscription, and also where a refresh that was under way brings it after that', async () => {
    const live = await fixture.subscribe(team, { pool_id: pool.pool_id });
    await fixture.settle();
    await refreshed([aPod('notebook-abcde', 'jupyter')]);
    await refresh();
    const late = await asked();
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    late.answer(new Map());
    await ended();
    await fixture.get(EndedConnections).removeSome();
    const kept = await fixture.query<{ subscription_id: string }>(
      'SELECT subscription_id FROM connection WHERE subscription_id = ANY ($1)',
      [[held.subscription_id, live.subscription_id]],
    );
    expect(kept).toEqual([{ subscription_id: live.subscription_id }]);
    expect(idsOf(await read())).toEqual([live.subscription_id]);
  });

  it('is for members; viewers may not see it, strangers find no team', async () => {
    const viewer = { ...team.member, teams: [{ teamId: team.team_id, role: 'viewer' as const }] };
    const stranger = (await fixture.team()).member;
    for (const operation of [connections.read, connections.refresh]) {
      const ask = (caller: object, more: object = {}) =>
        errorOf(fixture.call<{ team_id: string }, object>(operation, { team_id: team.team_id, ...more }, caller));
      expect((await ask(viewer)).code).toBe('forbidden');
      const [foreign, unknown] = [await ask(stranger), await ask(stranger, { team_id: newId() })];
      expect([foreign.code, foreign.message]).toEqual(['not_found', unknown.message]);
      expect((await ask(team.member, { gpuaas_id: '999999999' })).code).toBe('not_found');
    }
    expect(source.questions).toEqual([]);
  });
});

describe('a search', () => {
  const search = async (text: string) => idsOf(await read({ search: text }));

  it('finds a part of the name of a pool, a pod or a service, in either case', async () => {
    await refreshed([aPod('notebook-abcde', 'Jupyter', 'tensorboard')]);
    for (const text of ['', 'book-a', 'NOTEBOOK', 'jupyter', 'SORB', pool.pool_name.slice(3, 12)])
      expect(await search(text)).toEqual([held.subscription_id]);
    for (const text of ['notebook-abcdef', 'running', 'gpu-01', 'ssh', '30111', held.subscription_id + 'x'])
      expect(await search(text)).toEqual([]);
  });

  it('is plain: %, _, \\ and quotes mean themselves', async () => {
    const { subscription_id } = await fixture.subscribe(team, { pool_id: pool.pool_id });
    await refresh();
    const pods = new Map([
      [held.subscription_id, [aPod('ten-percent', 'a%b_c\\d\'e"f')]],
      [subscription_id, [aPod('tenXpercent', 'aXbXcXd')]],
    ]);
    (await asked()).answer(pods);
    await ended();
    for (const text of ['%', '_', '\\', "'", '"', 'a%b', 'b_c', 'c\\d', '\'e"'])
      expect(await search(text)).toEqual([held.subscription_id]);
    for (const text of ['a%c', 'a_b', '%%', '.', 't.n', '^ten', '*', '\\%']) expect(await search(text)).toEqual([]);
    expect(await search('percent')).toEqual([held.subscription_id, subscription_id]);
  });

  it('counts what it found, and is of the team alone', async () => {
    await refreshed([aPod('mine-abcde')]);
    const other = await fixture.team();
    await fixture.subscribe(other, { pool_id: pool.pool_id });
    const found = await fixture.call(
      connections.read,
      { team_id: team.team_id, search: pool.pool_name, limit: 1 },
      team.member,
    );
    expect(found.pagination).toEqual({ page: 1, limit: 1, total: 1 });
    const theirs = await fixture.call(connections.read, { team_id: other.team_id, search: 'mine' }, other.member);
    expect(theirs.data).toEqual([]);
  });
});

describe('a refresh', () => {
  it('asks the source for the subscriptions of the team that have not ended, once for each GPU service', async () => {
    const [other, { pool_id }] = [await fixture.pool({ mechanism: 'mps', replicas: 4 }), pool];
    const there = await fixture.subscribe(team, { pool_id: other.pool_id });
    await fixture.subscribe(await fixture.team(), { pool_id });
    const gone = await fixture.subscribe(team, { pool_id });
    await fixture.unsubscribe(team, gone);
    await fixture.settle();
    expect(await refresh()).toEqual({ status: 'refreshing', started_at: expect.stringMatching(/\.\d{3}Z$/) });
    const questions = [await asked(), await asked()];
    expect(questions.map(({ subscriptionIds }) => subscriptionIds).toSorted()).toEqual(
      [[held.subscription_id], [there.subscription_id]].toSorted(),
    );
    expect(questions.every(({ teamId }) => teamId === team.team_id)).toBe(true);
    for (const { answer } of questions) answer(new Map());
    await ended();
  });

  it('is one for all who ask while it is under way: the source is asked once, and all are told when it began', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => refresh()));
    expect(new Set(answers.map(({ started_at }) => started_at)).size).toBe(1);
    const question = await asked();
    expect(await refresh({ gpuaas_id: pool.gpuaas_id })).toEqual(answers[0]);
    question.answer(new Map([[held.subscription_id, [aPod('one-abcde')]]]));
    await ended();
    expect(source.questions).toEqual([]);
    expect(await read()).toMatchObject([{ pods: [{ pod_name: 'one-abcde' }] }]);
    await refreshed([aPod('two-abcde')]);
    expect(await read()).toMatchObject([{ pods: [{ pod_name: 'two-abcde' }] }]);
  });

  it('of one GPU service leaves the others as they are', async () => {
    const other = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    await fixture.subscribe(team, { pool_id: other.pool_id });
    await refresh({ gpuaas_id: pool.gpuaas_id });
    (await asked()).answer(new Map([[held.subscription_id, [aPod('here-abcde')]]]));
    await ended();
    expect(source.questions).toEqual([]);
    expect(await read()).toMatchObject([
      { pods: [{}], stale: false },
      { pods: [], refreshed_at: null, stale: false },
    ]);
  });

  it('of another team is another, also in the same pool', async () => {
    const other = await fixture.team();
    await fixture.subscribe(other, { pool_id: pool.pool_id });
    const ours = await refresh();
    // Instants are told in milliseconds.
    await delay(2);
    const theirs = await fixture.call(connections.refresh, { team_id: other.team_id }, other.member);
    expect(new Date(theirs.started_at).getTime()).toBeGreaterThan(new Date(ours.started_at).getTime());
    const questions = [await asked(), await asked()];
    expect(questions.map(({ teamId }) => teamId).toSorted()).toEqual([team.team_id, other.team_id].toSorted());
    for (const { answer } of questions) answer(new Map());
    await ended();
  });

  it('of a team that holds nothing asks nobody', async () => {
    const other = await fixture.team();
    expect(await fixture.call(connections.refresh, { team_id: other.team_id }, other.member)).toMatchObject({
      status: 'refreshing',
    });
    expect(await fixture.query('SELECT FROM connection_refresh WHERE team_id = $1', [other.team_id])).toEqual([]);
  });

  it('that fails keeps the last good values, marked stale, until one succeeds', async () => {
    await refreshed([aPod('kept-abcde')]);
    const [before] = await read();
    for (let time = 0; time < 2; time += 1) {
      await refresh();
      (await asked()).fail();
      await ended();
      expect(await read()).toEqual([{ ...before, stale: true }]);
    }
    await refreshed([aPod('new-abcde')]);
    expect(await read()).toMatchObject([{ pods: [{ pod_name: 'new-abcde' }], stale: false }]);
  });

  it('that nobody ended, because its process died, is over after a while: the values are stale, and the next one asks again', async () => {
    await refreshed([aPod('kept-abcde')]);
    await refresh();
    const dead = await asked();
    expect(await read()).toMatchObject([{ pods: [{ pod_name: 'kept-abcde' }], stale: false }]);
    await fixture.query(
      `UPDATE connection_refresh SET started_at = started_at - interval '31 seconds' WHERE team_id = $1`,
      [team.team_id],
    );
    expect(await read()).toMatchObject([{ pods: [{ pod_name: 'kept-abcde' }], stale: true }]);
    await refreshed([aPod('new-abcde')]);
    expect(await read()).toMatchObject([{ pods: [{ pod_name: 'new-abcde' }], stale: false }]);
    dead.fail();
  });

  it('whose answer comes after that of a later one changes nothing', async () => {
    await refresh();
    const late = await asked();
    await fixture.query(
      `UPDATE connection_refresh SET started_at = started_at - interval '31 seconds' WHERE team_id = $1`,
      [team.team_id],
    );
    await refreshed([aPod('new-abcde')]);
    const before = await read();
    late.answer(new Map([[held.subscription_id, [aPod('old-abcde')]]]));
    // Whatever the late answer does is done before the next refresh, as both are this process's.
    await refresh();
    (await asked()).fail();
    await ended();
    expect(await read()).toEqual(before.map((connection) => ({ ...connection, stale: true })));
  });

  it.each(['at once', 'while the source is asked'])(
    'does not keep the service from stopping %s: the source is told to end, or not asked any more',
    async (when) => {
      const dying = new Source();
      const other = await GpuaasFixture.start({ connections: dying });
      const ours = await other.team();
      const { pool_id } = await other.pool({ mechanism: 'mps', replicas: 2 });
      await other.subscribe(ours, { pool_id });
      await other.call(connections.refresh, { team_id: ours.team_id }, ours.member);
      while (when !== 'at once' && dying.questions.length === 0) await delay(5);
      await other.stop();
    },
  );
});

describe('instances that may attach', () => {
  it('are the VMs that run, whatever else the team holds; strangers find no team', async () => {
    const { team_id } = team;
    const viewer = { ...team.member, teams: [{ teamId: team_id, role: 'viewer' as const }] };
    expect(await fixture.call(connections.compatibleInstances, { team_id }, viewer)).toEqual({ data: [] });
    const vm = { instance_id: newId(), team_id, name: 'head-node', created_at: '2026-10-01T00:00:00.000Z' };
    const compatible = async () => (await fixture.call(connections.compatibleInstances, { team_id }, viewer)).data;
    // Events come in any order, and twice.
    await fixture.tell(vmChanged, { ...vm, revision: 2, is_running: true });
    await fixture.tell(vmChanged, { ...vm, revision: 1, is_running: false });
    await fixture.tell(vmChanged, { ...vm, instance_id: newId(), team_id: newId(), revision: 1, is_running: true });
    expect(await compatible()).toEqual([{ id: vm.instance_id, name: 'head-node', kind: 'vm', status: 'running' }]);
    const page = await fixture.call(connections.compatibleInstances, { team_id, page: 2, limit: 1 }, viewer);
    expect(page).toEqual({ data: [], pagination: { page: 2, limit: 1, total: 1 } });
    await fixture.tell(vmChanged, { ...vm, revision: 3, is_running: false });
    expect(await compatible()).toEqual([]);
    expect(
      (await errorOf(fixture.call(connections.compatibleInstances, { team_id }, (await fixture.team()).member))).code,
    ).toBe('not_found');
  });
});
