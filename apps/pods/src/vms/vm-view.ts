import type { Vm, VmStatus } from '@atoll/contracts/pods';
import { deletedAt, runStatus } from '../model/run-states.js';
import { shownError } from '../model/failing-row.js';
import type { VmEntity } from '../model/vm.entity.js';

export function vmView(vm: VmEntity): Vm {
  return {
    instance_id: vm.instanceId,
    name: vm.name,
    team_id: vm.teamId,
    workspace_id: vm.workspaceId,
    region_id: vm.regionId,
    gpuaas_id: vm.gpuaasId,
    flavour: vm.flavour,
    vcpus: vm.vcpus,
    memory_gb: Number(vm.memoryGb),
    image: vm.image,
    auto_restart: vm.autoRestart,
    status: runStatus(vm.state) as VmStatus,
    reason: shownError(vm)?.message ?? vm.endReason,
    restarts: vm.restarts,
    volumes: vm.volumes,
    created_at: vm.createdAt.toISOString(),
    started_at: vm.startedAt?.toISOString() ?? null,
    deleted_at: deletedAt(vm),
  };
}
