import { expect, it } from '@jest/globals';
import { call, createTeam, until, type Refusal } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';

it('a workspace is renamed by an admin of its team, and by nobody else', async () => {
  const ours = await createTeam('Ours', ['team_owner', 'team_admin', 'viewer']);
  const theirs = await createTeam('Theirs');
  const path = `/workspace/${ours.team.workspaces[0]?.id}`;
  const rename = (key = '') => call('PUT', path, { key, body: { name: 'training' } });
  expect((await rename(theirs.keys.team_owner)).status).toBe(404);
  expect((await rename(ours.keys.viewer)).status).toBe(403);
  expect(await rename(ours.keys.team_admin)).toMatchObject({ status: 200, body: { name: 'training' } });
});

it('a workspace is not deleted while a GPU pool subscription is in it, and is deleted afterwards', async () => {
  const node = await createNode();
  const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 });
  const tenant = await createTenant('Tenant', ['team_owner', 'member']);
  const owner = { key: tenant.keys.team_owner ?? '' };
  const { id } = (
    await call<{ id: string }>('POST', '/workspace', { ...owner, body: { team_id: tenant.teamId, name: 'lab' } })
  ).body;
  const subscribe = async () => (await tenant.subscribe({ pool_id: poolId, vgpus: 1, workspace_id: id })).body;
  const remove = () => call<Refusal>('DELETE', `/workspace/${id}`, owner);
  // The GPU service hears of a new workspace by an event.
  const held = await until(subscribe, ({ subscription_id }) => subscription_id !== undefined);
  const refused = await remove();
  expect([refused.status, refused.body.detail]).toEqual([
    409,
    'The workspace still holds something: 1 GPU pool subscription.',
  ]);
  await tenant.subscribed(held.subscription_id);
  await tenant.unsubscribe(held.subscription_id);
  await tenant.subscribed(held.subscription_id, 'unsubscribed');
  expect((await remove()).status).toBe(204);
  // 409 until the GPU service has heard that it is gone.
  expect([404, 409]).toContain((await tenant.subscribe({ pool_id: poolId, vgpus: 1, workspace_id: id })).status);
});
