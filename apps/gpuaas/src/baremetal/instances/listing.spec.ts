import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { baremetal, baremetalNodes, regions, type BaremetalInstance } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { memberOf } from '@atoll/testing';
import { errorOf, type ToldTeam } from '../../gpuaas-fixture.js';
import { BaremetalFixture } from '../baremetal-fixture.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

it('the instances of a team come in pages, in the order of their requests, with those that ended where asked for', async () => {
  const { region_id } = await fixture.available();
  const requested: BaremetalInstance[] = [];
  for (let count = 0; count < 4; count += 1) requested.push(await fixture.request(team, { region_id }));
  const [first] = requested;
  if (first) await fixture.end(team, first);
  await fixture.settle();
  const list = async (more: object = {}) => {
    const { data, pagination } = await fixture.gpuaas.call(
      baremetal.list,
      { team_id: team.team_id, ...more },
      team.member,
    );
    return [data.map(({ instance_id }) => requested.findIndex((one) => one.instance_id === instance_id)), pagination];
  };
  expect(await list()).toEqual([[1, 2, 3], { page: 1, limit: 10, total: 3 }]);
  expect(await list({ include_ended: 'true' })).toEqual([[0, 1, 2, 3], { page: 1, limit: 10, total: 4 }]);
  expect(await list({ page: 2, limit: 2 })).toEqual([[3], { page: 2, limit: 2, total: 3 }]);
  expect(await list({ page: 9, limit: 2 })).toEqual([[], { page: 9, limit: 2, total: 3 }]);
});

it('the instances of a team that there is not are not found, by the operator neither', async () => {
  const team_id = newId();
  const unknown = await errorOf(fixture.gpuaas.call(baremetal.list, { team_id }));
  const foreign = await errorOf(fixture.gpuaas.call(baremetal.list, { team_id }, team.member));
  expect([unknown.code, unknown.message]).toEqual(['not_found', foreign.message]);
});

it('a request without requirements is refused for that, whoever makes it, and for whichever team', async () => {
  const request = (team_id: string, caller?: object) =>
    errorOf(fixture.gpuaas.call(baremetal.request, { team_id, name: 'training', specs: {} }, caller));
  const viewer = memberOf(team.team_id, 'viewer');
  const refusals = [
    await request(team.team_id, team.member),
    await request(team.team_id, viewer),
    await request(newId(), team.member),
    await request(newId()),
  ];
  for (const { code, message } of refusals) {
    expect([code, message]).toEqual([
      'invalid_input',
      'specs must name at least one of gpu_model, gpu_count, cpu_cores and memory_gb.',
    ]);
  }
});

it('hosts come in pages, in the order they were registered, of one region where asked for', async () => {
  const { region_id } = await fixture.gpuaas.call(regions.create, { region_name: `region-${newId()}` });
  const ids: string[] = [];
  for (let count = 0; count < 3; count += 1) ids.push((await fixture.register({ region_id })).node_id);
  const list = async (more: object) => {
    const { data, pagination } = await fixture.gpuaas.call(baremetalNodes.list, { region_id, ...more });
    return [data.map((node) => ids.indexOf(node.node_id)), pagination];
  };
  expect(await list({})).toEqual([[0, 1, 2], { page: 1, limit: 10, total: 3 }]);
  expect(await list({ page: 2, limit: 2 })).toEqual([[2], { page: 2, limit: 2, total: 3 }]);
  expect(await list({ page: 3, limit: 2 })).toEqual([[], { page: 3, limit: 2, total: 3 }]);
  const { code, message } = await errorOf(list({ region_id: '999999999' }));
  expect([code, message]).toEqual(['not_found', 'No such region.']);
});
