import type { BaremetalNodeEntity } from '../model/baremetal-node.entity.js';
import type { BaremetalNodeState } from '../model/baremetal-node.machine.js';

/** Whether undoing is retried automatically. A host whose tenant had root waits for its reinstall. */
export function isToBeCleaned({ state, instanceId, tenantSudo }: BaremetalNodeEntity): boolean {
  return (state as BaremetalNodeState) === 'clean_failed' && instanceId !== null && !tenantSudo;
}

/** Whether a tenant had root on the host, and nobody has said since that it was installed anew. */
export function isToBeReinstalled({ state, instanceId, tenantSudo }: BaremetalNodeEntity): boolean {
  return (state as BaremetalNodeState) === 'clean_failed' && instanceId !== null && tenantSudo;
}
