import { endConnections } from '@atoll/testing';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { GpuaasFixture } from '../gpuaas-fixture.js';
import { PoolCatalogue } from './pool-catalogue.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

it('after a failover that lost commits, pools and GPU services are those of the new server', async () => {
  const [catalogue, kept] = [fixture.get(PoolCatalogue), await fixture.pool()];
  const [{ gpuaas_id: lost = '' } = {}] = await fixture.query<{ gpuaas_id: string }>(
    'INSERT INTO gpuaas (region_id, name) SELECT region_id, $1 FROM gpuaas RETURNING gpuaas_id::text',
    ['lost'],
  );
  await catalogue.requireGpuaas(lost);
  expect((await catalogue.pool(kept.pool_id)).poolName).toBe(kept.pool_name);
  await fixture.query('DELETE FROM gpuaas WHERE gpuaas_id = $1', [lost]);
  await fixture.query(`UPDATE pool SET pool_name = 'another' WHERE pool_id = $1`, [kept.pool_id]);
  await endConnections((sql) => fixture.query(sql));
  await fixture.query('SELECT 1');
  expect((await catalogue.pool(kept.pool_id)).poolName).toBe('another');
  await expect(catalogue.requireGpuaas(lost)).rejects.toMatchObject({ code: 'not_found' });
});
