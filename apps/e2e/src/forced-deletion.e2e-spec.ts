import { describe, expect, it } from '@jest/globals';
import { adminKey, call, createTeam, endTeam, until } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';

const quarters = { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 };
const force = (teamId: string, key: string) =>
  call<{ id?: string; status?: string; remaining?: { kind: string; count: number | null }[] }>(
    'DELETE',
    `/team/${teamId}?force=true`,
    {
      key,
    },
  );

describe('a team that is deleted with what it holds', () => {
  it('is gone with its subscriptions and workloads, and gives their capacity back', async () => {
    const tenant = await createTenant('Ending', ['team_owner', 'member']);
    const node = await createNode();
    const { poolId } = await createPool(node, quarters);
    const { body } = await tenant.subscribe({ pool_id: poolId, vgpus: 2 });
    await tenant.subscribed(body.subscription_id);
    const started = await tenant.start(body.subscription_id);
    await tenant.runs(started.body.workload_id);
    const owner = tenant.keys.team_owner ?? '';
    const refused = await call<{ detail: string }>('DELETE', `/team/${tenant.teamId}`, { key: owner });
    expect(refused.status).toBe(409);

    const deleted = await force(tenant.teamId, owner);
    // A busy machine may take longer than the answer waits.
    if (deleted.status === 202) {
      expect(deleted.body).toMatchObject({ id: tenant.teamId, status: 'deleting' });
      expect(deleted.body.remaining?.length).toBeGreaterThan(0);
    } else expect([deleted.status, deleted.body]).toEqual([204, '']);
    await until(
      () => call('GET', `/team/${tenant.teamId}`, { key: adminKey }),
      ({ status }) => status === 404,
    );
    expect((await call('GET', `/team/${tenant.teamId}`, { key: owner })).status).toBe(401);
    const other = await createTenant('Next');
    await until(
      () => other.offers(node.gpuaasId),
      ([profile]) => profile?.available_vgpus === 4,
    );
  });

  it('is refused to all but its owners and the operator, and takes only true or false', async () => {
    const { team, keys } = await createTeam('Guarded', ['team_owner', 'team_admin']);
    const stranger = await createTeam('Stranger');
    expect((await force(team.id, keys.team_admin ?? '')).status).toBe(403);
    expect((await force(team.id, stranger.keys.team_owner ?? '')).status).toBe(404);
    const wrong = await call<{ errors: { path: string }[] }>('DELETE', `/team/${team.id}?force=yes`, {
      key: keys.team_owner ?? '',
    });
    expect([wrong.status, wrong.body.errors.map(({ path }) => path)]).toEqual([400, ['force']]);
    await endTeam(team.id, adminKey);
  });
});
