import type { HeldUsage } from '@atoll/team-directory';
import type { PodEntity } from '../model/pod.entity.js';
import type { VmEntity } from '../model/vm.entity.js';

/** What is held of a pod (1) or no longer (0), from the state that it is in on. */
export function heldOfPod(pod: PodEntity, quantity: 0 | 1): HeldUsage {
  const { podId: id, podName: name, regionId } = pod;
  return { row: pod, kind: 'pod', id, name, sku: 'pod', quantity, regionId };
}

/** As `heldOfPod`, of a VM. */
export function heldOfVm(vm: VmEntity, quantity: 0 | 1): HeldUsage {
  const { instanceId: id, name, flavour, regionId } = vm;
  return { row: vm, kind: 'vm', id, name, sku: `vm.${flavour}`, quantity, regionId };
}
