import { regions } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { Outbox } from '@atoll/events';
import type { GpuaasFixture } from '../gpuaas-fixture.js';
import { ClusterChecks } from './cluster-checks.js';

/** A GPU service, whose cluster nobody has set. */
export async function aGpuaas(fixture: GpuaasFixture): Promise<string> {
  const { region_id } = await fixture.call(regions.create, { region_name: `region-${newId()}` });
  return (await fixture.call(regions.createGpuaas, { region_id, name: 'a' })).gpuaas_id;
}

/** What others were told of the cluster of this GPU service, in the order in which it was published. */
export async function toldOf(fixture: GpuaasFixture, gpuaasId: string) {
  while ((await fixture.get(Outbox).pending()) > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  return fixture.events
    .filter(
      ({ name, payload }) =>
        name === 'gpuaas.cluster_changed' && (payload as { gpuaas_id: string }).gpuaas_id === gpuaasId,
    )
    .map(({ payload }) => payload as { revision: number; setting: number; is_unreachable: boolean })
    .toSorted((one, other) => one.revision - other.revision);
}

/** These alone are due to be checked, and remain so if the clock of the machine is set back. */
export async function makeDue(fixture: GpuaasFixture, ...gpuaasIds: string[]): Promise<void> {
  const due = `CASE WHEN gpuaas_id = ANY ($1::bigint[]) THEN clock_timestamp() - interval '1 hour' ELSE 'infinity' END`;
  await fixture.query(`UPDATE cluster SET next_check_at = ${due}`, [gpuaasIds]);
}

/** A round of checks in which these alone are due, to its end: it goes on until none is. */
export async function roundOf(fixture: GpuaasFixture, ...gpuaasIds: string[]): Promise<void> {
  await makeDue(fixture, ...gpuaasIds);
  await fixture.get(ClusterChecks).round();
  await fixture.get(ClusterChecks).settled();
}
