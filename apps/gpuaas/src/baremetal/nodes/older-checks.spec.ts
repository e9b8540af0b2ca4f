import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { UncleanedHosts1878000000000 } from '../../database/migrations/1878000000000-uncleaned-hosts.js';
import type { ToldTeam } from '../../gpuaas-fixture.js';
import { BaremetalFixture } from '../baremetal-fixture.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

/** As the check of an older release left a host that could not be cleaned. */
async function leftBehind(gpu_model: string, state: 'check_failed' | 'checking') {
  const specs = { gpu_model, gpu_count: 8, cpu_cores: 128, memory_gb: 1024 };
  const node = await fixture.available('verify-fail.revoke-refuse', { specs });
  await fixture.settled(team, { specs: { gpu_model } });
  await fixture.gpuaas.query(
    `UPDATE baremetal_node SET name = $2, machine_id = NULL, state = $3, due_at = NULL, parked_until = NULL,
       deadline_at = CASE WHEN $3 = 'checking' THEN now() + interval '5 min' END, last_error = '{"code": "specs_differ", "message": "It differs.", "at": ""}'
     WHERE node_id = $1`,
    [node.node_id, `mended-${gpu_model}`, state],
  );
  return node;
}

async function migrate(): Promise<void> {
  const runner = fixture.gpuaas.get(DataSource).createQueryRunner();
  await new UncleanedHosts1878000000000().up(runner);
  await runner.release();
}

it.each(['check_failed', 'checking'] as const)(
  'a host with its last tenant still on it, in %s, is cleaned, then checked, then offered',
  async (state) => {
    const node = await leftBehind(`M-${state}`, state);
    expect(Object.keys(await fixture.usersOf(node))).toHaveLength(1);
    await migrate();
    expect((await fixture.node(node.node_id)).status).toBe('Clean failed');
    await fixture.settle();
    expect(await fixture.node(node.node_id)).toMatchObject({
      status: 'Available',
      maintenance: false,
      instance_id: null,
    });
    expect(await fixture.usersOf(node)).toEqual({});
    const history = await fixture.gpuaas.query<{ to_state: string }>(
      `SELECT to_state FROM machine_history WHERE machine = 'baremetal_node' AND instance = $1 ORDER BY id`,
      [node.node_id],
    );
    expect(history.map(({ to_state }) => to_state).slice(-3)).toEqual(['clean_failed', 'checking', 'available']);
  },
);

it('a host whose check failed and that has no tenant stays as it is, as does one that waits for its reinstall', async () => {
  const rooted = await leftBehind('M-rooted', 'check_failed');
  await fixture.gpuaas.query('UPDATE baremetal_node SET tenant_sudo = true WHERE node_id = $1', [rooted.node_id]);
  const empty = await fixture.available();
  await fixture.gpuaas.query(
    `UPDATE baremetal_node SET state = 'check_failed', parked_until = NULL WHERE node_id = $1`,
    [empty.node_id],
  );
  await migrate();
  for (const { node_id } of [rooted, empty]) expect((await fixture.node(node_id)).status).toBe('Check failed');
});
