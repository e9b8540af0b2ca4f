import { afterAll, beforeAll, expect, it } from '@jest/globals';
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
  const begun = await fixture.get(Transactions).run(async (manager) => {
    const gpus = await steps.lockAll(manager, gpu_ids);
    return steps.beginAll(manager, gpus, 'FALL_BACK', { actor: 'system:gpuaas', reason: 'a third vGPU' });
  });
  expect(begun.map(({ state }) => state)).toEqual(['to_temporal', 'to_temporal', 'to_temporal']);
  expect(await generations()).toEqual(before.map((generation) => generation + 2));
});
