import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { baremetal, gpuHoldings } from '@atoll/contracts/gpuaas';
import { systemContext } from '@atoll/rpc';
import { mostRowsRead, statementsOf } from '@atoll/testing';
import { TeamCapacity } from '../../capacity/team-capacity.js';
import { BaremetalFixture } from '../baremetal-fixture.js';

const ended = 2_000;

let fixture: BaremetalFixture;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
});
afterAll(() => fixture.stop());

it('hosts that a team gave back are not read for what it has: its listing, its holdings, its capacity', async () => {
  const { team_id, member } = await fixture.team();
  const { gpuaas } = fixture;
  await gpuaas.query(
    `INSERT INTO baremetal_instance (instance_id, team_id, workspace_id, name, username, state, placed_keys)
     SELECT gen_random_uuid(), $1, $1, 'ended', 'ended', 'released', '' FROM generate_series(1, $2::int)`,
    [team_id, ended],
  );
  await gpuaas.query('VACUUM (ANALYZE) baremetal_instance');
  const context = systemContext('teams', { deadlineMs: 60_000 });
  const sent = await statementsOf(async () => {
    await gpuaas.call(baremetal.list, { team_id }, member);
    await gpuaas.ask(gpuHoldings.ofTeam, { team_id }, context);
    await gpuaas.query('INSERT INTO capacity_change (team_id) VALUES ($1)', [team_id]);
    await gpuaas.get(TeamCapacity).tell();
  });
  const reads = sent.filter(({ text }) => /\bFROM baremetal_instance\b/.test(text));
  expect(reads.length).toBeGreaterThanOrEqual(2);
  for (const read of reads) expect(await mostRowsRead(gpuaas, read)).toBeLessThan(100);
});
