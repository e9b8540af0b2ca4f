import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { connections } from '@atoll/contracts/gpuaas';
import { errorOf, GpuaasFixture } from '../gpuaas-fixture.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

it('connection information is of one subscription where asked, empty once that has ended; another team’s is not found, nor one of another GPU service', async () => {
  const [team, other] = [await fixture.team(), await fixture.team()];
  const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 8 });
  const read = async (more: object) =>
    (await fixture.call(connections.read, { team_id: team.team_id, ...more }, team.member)).data;
  await fixture.subscribe(team, { pool_id });
  const held = await fixture.subscribe(team, { pool_id });
  const { subscription_id } = held;
  expect((await read({})).length).toBe(2);
  expect(await read({ subscription_id })).toMatchObject([{ subscription_id }]);
  expect(await read({ subscription_id, search: 'no such name' })).toEqual([]);
  const theirs = await fixture.subscribe(other, { pool_id });
  const foreign = await errorOf(read({ subscription_id: theirs.subscription_id }));
  const unknown = await errorOf(read({ subscription_id: '999999999' }));
  expect([foreign.code, foreign.message]).toEqual(['not_found', unknown.message]);
  const { gpuaas_id } = await fixture.inventory();
  expect((await errorOf(read({ subscription_id, gpuaas_id }))).code).toBe('not_found');
  await fixture.unsubscribe(team, held);
  await fixture.settle();
  expect(await read({ subscription_id })).toEqual([]);
});
