import { expect, it } from '@jest/globals';
import { call, succeed, until, type Refusal } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';

interface PodView {
  pod_name: string;
  stops_at: string | null;
  max_duration_minutes: number | null;
  idle_stop: { minutes: number } | null;
}

const noLimits = {
  default_duration_minutes: null,
  longest_duration_minutes: null,
  default_idle_stop: null,
  longest_idle_minutes: null,
};

it('a team limits how long its pods run and idle; the log of a pod says that it is stopped soon', async () => {
  const tenant = await createTenant('Thrifty', ['team_owner', 'member', 'viewer']);
  const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }] });
  const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 });
  const { subscription_id } = (await tenant.subscribe({ pool_id: poolId, vgpus: 2 })).body;
  const path = `/team/${tenant.teamId}/pod-limits`;
  const limits = { ...noLimits, default_duration_minutes: 5, longest_duration_minutes: 60, longest_idle_minutes: 30 };
  const set = (key = tenant.keys.team_owner) => call('PUT', path, { key, body: limits });
  expect((await set(tenant.key)).status).toBe(403);
  const stranger = await createTenant('Strangers', ['team_owner']);
  expect((await set(stranger.keys.team_owner)).status).toBe(404);
  expect((await call('PUT', '/pod-limits', { key: tenant.keys.team_owner, body: noLimits })).status).toBe(403);
  const effective = { ...limits, default_idle_stop: { minutes: 30, gpu_below_percent: 5 } };
  expect(await set()).toMatchObject({ status: 200, body: { ...limits, effective } });
  expect((await call('GET', path, { key: tenant.keys.team_owner })).body).toMatchObject({ effective });
  const create = (body: object) =>
    call<PodView & Refusal>('POST', '/pods', {
      key: tenant.key,
      body: { team_id: tenant.teamId, subscription_id, name: 'job', image: 'python:3.13', ...body },
    });
  const refused = await create({ max_duration_minutes: 61 });
  expect([refused.status, refused.body.detail]).toEqual([
    400,
    'max_duration_minutes must be at most 60, the upper bound.',
  ]);
  const { status, body: pod } = await create({});
  expect([status, pod]).toMatchObject([202, { max_duration_minutes: 5, idle_stop: { minutes: 30 } }]);
  const read = () => succeed<PodView>('GET', `/pods/${pod.pod_name}`, { key: tenant.key });
  const { stops_at } = await until(read, (found) => found.stops_at !== null);
  const logs = () =>
    succeed<{ data: { stream: string; message: string }[] }>(
      'GET',
      `/logs/pods?pod_name=${pod.pod_name}&search=maximum%20duration`,
      {
        key: tenant.key,
      },
    );
  const { data } = await until(logs, (found) => found.data.length > 0);
  const message = `The pod will be stopped at ${stops_at}, at the end of its maximum duration of 5 minutes.`;
  expect(data).toMatchObject([{ stream: 'platform', message }]);
});
