import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { newId } from '@atoll/database';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { errorOf, type ToldTeam } from '../../gpuaas-fixture.js';
import { maxRequests } from '../nodes/host-matching.js';
import { BaremetalFixture } from '../baremetal-fixture.js';

const many = 5_000;

let fixture: BaremetalFixture;
let ours: ToldTeam;
let theirs: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
  [ours, theirs] = [await fixture.team(), await fixture.team()];
});
afterAll(() => fixture.stop());

const sized = (gpu_model: string, gpu_count = 8) => ({
  specs: { gpu_model, gpu_count, cpu_cores: 64, memory_gb: 512 },
});
const modelOf = (name: string) => `${name}-${newId().slice(-8)}`;
const setAside = (model: string, isSetAside: boolean) =>
  fixture.gpuaas.query('UPDATE baremetal_node SET is_maintenance = $2 WHERE gpu_model = $1', [model, isSetAside]);

/** Rows as those of requests that wait, or have ended. The ids are later than all others. */
const insert = (state: string, teamId: string, model: string, count: number) =>
  fixture.gpuaas.query(
    `INSERT INTO baremetal_instance (instance_id, team_id, workspace_id, name, gpu_model, username, state, placed_keys)
     SELECT ('ffffffff' || substr(gen_random_uuid()::text, 9))::uuid, $2, $2, 'many', $3, 'many', $1, '' FROM generate_series(1, $4::int)`,
    [state, teamId, model, count],
  );

it(`of one team ${maxRequests} requests wait, also of those that come at once; other teams are not refused`, async () => {
  const [model, other] = [modelOf('bound'), modelOf('unasked')];
  await fixture.available('', sized(model));
  await setAside(model, true);
  await insert('requested', ours.team_id, model, maxRequests - 4);
  // Those that do not wait any more do not count.
  await insert('released', ours.team_id, model, 5);
  const errors = await Promise.all(
    Array.from({ length: 10 }, () => errorOf(fixture.request(ours, { specs: { gpu_model: model } })).catch(() => null)),
  );
  const refused = errors.filter((error) => error !== null);
  expect(refused).toHaveLength(6);
  expect(refused[0]).toMatchObject({ code: 'conflict', message: expect.stringMatching(/^64 requests .* at most 64/) });
  // Nor for hosts for which nobody else waits.
  await fixture.available('', sized(other));
  await setAside(other, true);
  expect((await errorOf(fixture.request(ours, { specs: { gpu_model: other } }))).message).toMatch(
    /^64 requests of the team wait for a host; at most 64/,
  );
  expect((await fixture.request(theirs, { specs: { gpu_model: model } })).status).toBe('Requested');
  await fixture.gpuaas.query('DELETE FROM baremetal_instance WHERE gpu_model = $1', [model]);
});

it('of 200 teams that ask for all they may some hundreds wait in all; another team has one, and more for other nodes', async () => {
  const [model, other] = [modelOf('rivals'), modelOf('calm')];
  for (const each of [model, other]) await fixture.available('', sized(each));
  await setAside(model, true);
  await setAside(other, true);
  const request = (of: ToldTeam, gpu_model: string) => fixture.request(of, { specs: { gpu_model } });
  // Four teams of the 200: as many as they could always have.
  for (let team = 0; team < 4; team += 1) await insert('requested', newId(), model, maxRequests);
  // What waits elsewhere does not count here, nor the other way round.
  for (const each of [other, model]) expect((await request(theirs, each)).status).toBe('Requested');
  expect(await errorOf(request(theirs, model))).toMatchObject({
    code: 'conflict',
    message:
      '1 request of the team waits for such a host, as many others do; at most 1 may. Cancel one, or wait until one is served.',
  });
  expect((await request(theirs, other)).status).toBe('Requested');
  await fixture.gpuaas.query('DELETE FROM baremetal_instance WHERE gpu_model = ANY ($1)', [[model, other]]);
});

it('requests of one team hold up none of another: each team has its own lane', async () => {
  const [full, free] = [modelOf('full'), modelOf('free')];
  await fixture.available('', sized(full));
  await setAside(full, true);
  await fixture.available('', sized(free));
  for (let count = 0; count < 10; count += 1) await fixture.request(ours, { specs: { gpu_model: full } });
  const other = await fixture.request(theirs, { specs: { gpu_model: free } });
  await fixture.reach(other, 'reaching');
  const untried = 'SELECT FROM baremetal_instance WHERE gpu_model = $1 AND due_at IS NOT NULL';
  expect((await fixture.gpuaas.query(untried, [full])).length).toBeGreaterThanOrEqual(9);
  await fixture.settle();
});

it('hosts that become free at once are given out at once, in the order of arrival of all teams', async () => {
  const model = modelOf('wave');
  for (let count = 0; count < 3; count += 1) await fixture.available('', sized(model));
  await setAside(model, true);
  const asked = [];
  for (const team of [ours, theirs, ours, theirs, ours])
    asked.push({ team, instance: await fixture.request(team, { specs: { gpu_model: model } }) });
  await fixture.work();
  await setAside(model, false);
  await fixture.sweep();
  await fixture.work();
  const statuses = await Promise.all(
    asked.map(async ({ team, instance }) => (await fixture.instance(team, instance)).status),
  );
  expect(statuses).toEqual(['Active', 'Active', 'Active', 'Requested', 'Requested']);
});

it('those who wait are read once for all hosts of a kind', async () => {
  const [model, other] = [modelOf('crowd'), modelOf('other')];
  const first = await fixture.available('', sized(model));
  await fixture.gpuaas.query(
    `INSERT INTO baremetal_node (name, region_id, host, port, ssh_user, credential, driver, tenant_sudo, home, gpu_model, gpu_count, cpu_cores, memory_gb, state)
     SELECT 'crowd-' || gen_random_uuid(), region_id, gen_random_uuid()::text, 22, 'root', credential, 'simulated', false, 'remove', gpu_model, gpu_count,
       cpu_cores, memory_gb, 'available' FROM baremetal_node, generate_series(1, 49) WHERE node_id = $1`,
    [first.node_id],
  );
  await insert('requested', newId(), other, many);
  await fixture.gpuaas.query('ANALYZE baremetal_instance');
  const sent = await allStatementsDuring(async () => {
    await fixture.reach(await fixture.request(ours, { specs: { gpu_model: model } }), 'reaching');
  });
  const picks = sent.filter(({ text }) => /ORDER BY has_failed_me, n.gpu_count/.test(text));
  expect(picks).toHaveLength(1);
  for (const pick of picks) expect(await mostRowsRead(fixture.gpuaas, pick)).toBeLessThan(3 * many);
  await fixture.gpuaas.query(`DELETE FROM baremetal_instance WHERE gpu_model = $1`, [other]);
  await fixture.gpuaas.query(`UPDATE baremetal_node SET state = 'removed' WHERE name LIKE 'crowd-%'`);
});
