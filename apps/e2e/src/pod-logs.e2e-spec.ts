import { beforeAll, describe, expect, it } from '@jest/globals';
import { adminKey, call, createTeam, until, type Refusal } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';

interface LogPage {
  data: {
    timestamp: string;
    pod_name: string;
    container: string;
    stream: string;
    message: string;
    gpuaas_id: string;
  }[];
  next_cursor: string | null;
}

let tenant: Awaited<ReturnType<typeof createTenant>>;
let gpuaasId: string;
let podName: string;

beforeAll(async () => {
  tenant = await createTenant('Loggers', ['team_owner', 'member', 'viewer']);
  const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }] });
  ({ gpuaasId } = node);
  const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 });
  const { body: subscription } = await tenant.subscribe({ pool_id: poolId, vgpus: 1 });
  const body = {
    team_id: tenant.teamId,
    subscription_id: subscription.subscription_id,
    name: 'trainer',
    image: 'python:3.13',
  };
  podName = (await call<{ pod_name: string }>('POST', '/pods', { key: tenant.key, body })).body.pod_name;
});

const read = (query: Record<string, string>, key = tenant.key) =>
  call<LogPage & Refusal>('GET', `/logs/pods?${new URLSearchParams(query).toString()}`, { key });
const messagesOf = ({ body }: { body: LogPage }) => body.data.map(({ message }) => message);
/** The first lines, once there are so many. */
const written = (lines: number) =>
  until(
    () => read({ pod_name: podName, order: 'asc' }),
    ({ status, body }) => status === 200 && body.data.length >= lines,
  );

describe('the log of a pod', () => {
  it('has what it writes, newest first, and is paged without a loss', async () => {
    const first = messagesOf(await written(4)).slice(0, 4);
    const { body } = await read({ pod_name: podName });
    expect(body.data[0]).toMatchObject({ pod_name: podName, container: 'main', gpuaas_id: gpuaasId });
    const newestFirst = body.data.map(({ timestamp }) => timestamp);
    expect(newestFirst).toEqual(newestFirst.toSorted().reverse());
    const one = await read({ pod_name: podName, order: 'asc', limit: '2' });
    const two = await read({ pod_name: podName, order: 'asc', limit: '2', cursor: one.body.next_cursor ?? '' });
    expect([...messagesOf(one), ...messagesOf(two)]).toEqual(first);
  });

  it('is followed: what is written after a page is on the next one', async () => {
    const { body: page } = await written(1);
    const next = await until(
      () => read({ pod_name: podName, order: 'asc', cursor: page.next_cursor ?? '' }),
      ({ body }) => body.data.length > 0,
    );
    expect(next.body.data[0]?.timestamp.localeCompare(page.data.at(-1)?.timestamp ?? '')).toBeGreaterThanOrEqual(0);
  });

  it('is searched letter for letter, and filtered', async () => {
    const [line = ''] = messagesOf(await written(1));
    expect(messagesOf(await read({ pod_name: podName, search: line }))).toContain(line);
    expect(messagesOf(await read({ pod_name: podName, search: '%_.*' }))).toEqual([]);
    const ofAll = await until(
      () => read({ gpuaas_id: gpuaasId, order: 'asc' }),
      ({ body }) => body.data.length > 0,
    );
    expect(messagesOf(ofAll)[0]).toBe(line);
    expect(messagesOf(await read({ until: '2026-01-01T00:00:00Z' }))).toEqual([]);
  });

  it('is its team’s alone, of those who may use pods', async () => {
    const theirs = await createTeam('Others');
    await written(1);
    expect((await read({ pod_name: podName }, theirs.keys.team_owner)).status).toBe(404);
    expect((await read({ team_id: tenant.teamId }, theirs.keys.team_owner)).status).toBe(404);
    expect((await read({}, theirs.keys.team_owner)).body).toMatchObject({ data: [], next_cursor: null });
    expect((await read({ pod_name: podName }, tenant.keys.viewer)).status).toBe(403);
    expect((await read({}, adminKey)).status).toBe(400);
    expect(messagesOf(await read({ team_id: tenant.teamId }, adminKey)).length).toBeGreaterThan(0);
  });

  it.each([
    [{ limit: '0' }, 'limit'],
    [{ limit: '1001' }, 'limit'],
    [{ order: 'up' }, 'order'],
    [{ since: 'yesterday' }, 'since'],
    [{ cursor: 'x' }, 'cursor'],
    [{ search: 'x'.repeat(201) }, 'search'],
    [{ level: 'error' }, 'level'],
  ])('refuses %j by the name of the field', async (query, path) => {
    const { status, body } = await read(query);
    expect([status, body.errors?.[0]?.path]).toEqual([400, path]);
  });

  it('outlives its pod', async () => {
    const [line] = messagesOf(await written(1));
    await call('DELETE', `/pods/${podName}`, { key: tenant.key });
    await until(
      () => call('GET', `/pods/${podName}`, { key: tenant.key }),
      ({ status }) => status === 404,
    );
    expect(messagesOf(await read({ pod_name: podName, order: 'asc' }))[0]).toBe(line);
  });
});
