import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { subscriptions } from '@atoll/contracts/gpuaas';
import { Transactions } from '@atoll/database';
import { GpuaasFixture } from '../gpuaas-fixture.js';
import { GpuSteps } from './gpu-steps.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

it('of GPUs that begin together, each asks its device for more than that has done, whatever others have', async () => {
  const terms = { mechanism: 'mps', replicas: 2, allow_fallback: true, temporal_replicas: 4 } as const;
  const { gpu_ids } = await fixture.pool(terms, { count: 3 });
  const generations = async () =>
    (
      await fixture.query<{ generation: string }>(
        'SELECT generation FROM gpu WHERE gpu_id = ANY ($1::bigint[]) ORDER BY gpu_id',
        [gpu_ids],
      )
    ).map(({ generation }) => Number(generation));
  await fixture.query('UPDATE gpu SET generation = generation + 40 WHERE gpu_id = $1', [gpu_ids[1]]);
  const before = await generations();

  const steps = fixture.get(GpuSteps);
  await fixture.get(Transactions).run(async (manager) => {
    const gpus = await steps.lockAll(manager, gpu_ids);
    await steps.beginAll(manager, gpus, 'FALL_BACK', { actor: 'system:gpuaas', reason: 'a third vGPU' });
  });
  const states = await fixture.query('SELECT DISTINCT state FROM gpu WHERE gpu_id = ANY ($1::bigint[])', [gpu_ids]);
  expect(states).toEqual([{ state: 'to_temporal' }]);
  expect(await generations()).toEqual(before.map((generation) => generation + 2));
});

it('of GPUs that fall back, and return, together, each has its own turns, slots and history', async () => {
  const team = await fixture.team();
  const terms = { mechanism: 'mps', replicas: 2, allow_fallback: true, temporal_replicas: 4 } as const;
  const { pool_id, gpu_ids } = await fixture.pool(terms, { count: 3 });
  const places = (of: string[]) =>
    fixture.query(
      `SELECT gpu_id AS gpu, subscription_id AS of, slot_start AS slot, turn FROM lease
       WHERE gpu_id = ANY ($1::bigint[]) AND subscription_id = ANY ($2::bigint[]) ORDER BY gpu_id, lease_id`,
      [gpu_ids, of],
    );
  const history = (event: string) =>
    fixture.query(
      `SELECT instance, from_state, to_state, actor, reason FROM machine_history
       WHERE machine = 'gpu' AND instance = ANY ($1) AND event = $2 ORDER BY instance::bigint`,
      [gpu_ids, event],
    );
  const by = (more: object) =>
    gpu_ids.map((instance) => ({ instance, actor: expect.stringMatching(/^user:/), ...more }));

  const { subscription_id: first } = await fixture.subscribe(team, { pool_id, vgpus: 6 });
  const { subscription_id: second } = await fixture.subscribe(team, { pool_id, vgpus: 6 });
  const falling = gpu_ids.flatMap((gpu) => [
    { gpu, of: first, slot: 0, turn: 0 },
    { gpu, of: first, slot: 1, turn: 1 },
    { gpu, of: second, slot: null, turn: 2 },
    { gpu, of: second, slot: null, turn: 3 },
  ]);
  expect(await places([first, second])).toEqual(falling);
  expect(await history('FALL_BACK')).toEqual(by({ from_state: 'spatial', to_state: 'to_temporal', reason: null }));
  await fixture.settle();
  expect(await places([first, second])).toEqual(falling.map((place) => ({ ...place, slot: null })));

  // Two of the GPUs have room for what is left on them.
  await fixture.call(subscriptions.resize, { subscription_id: second, vgpus: 1 }, team.member);
  const [full, ...fitting] = gpu_ids;
  expect(await places([first, second])).toEqual([
    { gpu: full, of: first, slot: null, turn: 0 },
    { gpu: full, of: first, slot: null, turn: 1 },
    { gpu: full, of: second, slot: null, turn: 2 },
    ...fitting.flatMap((gpu) => [0, 1].map((place) => ({ gpu, of: first, slot: place, turn: place }))),
  ]);
  expect(await history('RETURN')).toEqual(
    by({ from_state: 'temporal', to_state: 'to_spatial', reason: 'from 6 to 1 vGPUs' }).slice(1),
  );
  await fixture.settle();
});
