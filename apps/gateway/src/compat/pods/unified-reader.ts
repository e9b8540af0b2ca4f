import type { CallContext } from '@atoll/contracts';
import { gpuaasBatches, type Places } from '@atoll/contracts/gpuaas';
import { podBatches, type FindInstances, type FoundInstance, type FoundInstances } from '@atoll/contracts/pods';
import { teamBatches, type FoundWorkspaces } from '@atoll/contracts/teams';
import type { Rpc } from '@atoll/rpc';
import { countryCodeOf } from '../http/country-codes.js';
import { unifiedId, type Unified } from './unified.js';

/** Statuses of the main API that old clients do not know, each with the nearest that they do. */
const renamed: Readonly<Record<string, string>> = {
  pulling: 'starting',
  Requested: 'pending',
  Provisioning: 'starting',
  Active: 'active',
  Releasing: 'stopping',
  Failed: 'failed',
  Released: 'terminated',
  Cancelled: 'terminated',
};

export const oldInstanceStatus = (status: string): string => renamed[status] ?? status;

/** Instances with their places: three calls, whatever their number. */
export async function readInstances(
  rpc: Rpc,
  asked: FindInstances,
  context: CallContext,
): Promise<{ items: Unified[]; found: FoundInstances }> {
  const found = await rpc.call(podBatches.instances, asked, context);
  const subscription_ids = distinct(found.data.map(({ pod }) => pod?.subscription_id));
  const region_ids = distinct(found.data.map(({ region_id }) => region_id));
  const [places, { workspaces }] = await Promise.all([
    rpc.call(
      gpuaasBatches.places,
      { ...(subscription_ids.length > 0 && { subscription_ids }), ...(region_ids.length > 0 && { region_ids }) },
      context,
    ),
    rpc.call(
      teamBatches.workspaces,
      { workspace_ids: distinct(found.data.map(({ workspace_id }) => workspace_id)) },
      context,
    ),
  ]);
  return { items: found.data.map((instance) => unifiedOf(instance, places, workspaces)), found };
}

function distinct(values: readonly (string | null | undefined)[]): string[] {
  return [...new Set(values.filter((value) => value != null))];
}

function unifiedOf(instance: FoundInstance, places: Places, workspaces: FoundWorkspaces['workspaces']): Unified {
  const { id, name, kind, status, team_id, workspace_id, region_id, created_at, pod, vm, exposed_count } = instance;
  const workspace = workspaces.find((one) => one.id === workspace_id);
  const region = places.regions.find((one) => one.region_id === region_id);
  const place = places.subscriptions.find(({ subscription_id }) => subscription_id === pod?.subscription_id);
  return {
    id: unifiedId(id),
    name: pod?.name ?? name,
    created_at,
    status: oldInstanceStatus(status),
    nature: kind,
    ip: [],
    ...(pod && { service: { id: Number(pod.subscription_id), name: place?.pool_name ?? '', type: kind } }),
    ...(vm && {
      instance_type: {
        id: vm.flavour,
        name: vm.flavour,
        cpu_cores: vm.vcpus,
        ram_mb: Math.round((vm.memory_gb * 1e9) / 2 ** 20),
      },
    }),
    team: { id: team_id, name: workspace?.team_name ?? '' },
    region: {
      id: region_id === null ? null : Number(region_id),
      region_name: region?.region_name ?? '',
      city: region?.city ?? '',
      country: region?.country ?? '',
      country_code: countryCodeOf(region?.country ?? null),
    },
    workspace: { id: workspace_id, name: workspace?.name ?? '' },
    ...(pod && {
      pod_info: {
        pool_id: place ? Number(place.pool_id) : null,
        pool_name: place?.pool_name ?? '',
        model: place?.board ?? '',
        vendor: 'NVIDIA',
        provisioned_service_name: pod.pod_name,
        exposed_count,
        vgpu_count: pod.vgpus,
        vram_gb: place?.v_ram_gb ?? '',
      },
    }),
  };
}
