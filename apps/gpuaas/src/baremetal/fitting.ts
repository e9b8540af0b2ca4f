import type { BaremetalHostSpecs, BaremetalRequirements } from '@atoll/contracts/gpuaas';

/** In SQL: whether a node has what a request asks for. The arguments are names of rows. */
export function fits(node: string, request: string): string {
  return `(${request}.region_id IS NULL OR ${request}.region_id = ${node}.region_id)
    AND (${request}.gpu_model IS NULL OR lower(${request}.gpu_model) = lower(${node}.gpu_model))
    AND coalesce(${request}.gpu_count, 0) <= ${node}.gpu_count
    AND coalesce(${request}.cpu_cores, 0) <= ${node}.cpu_cores
    AND coalesce(${request}.memory_gb, 0) <= ${node}.memory_gb`;
}

/** In SQL: whether a node may be given to a tenant now. */
export function isOffered(node: string): string {
  return `${node}.state = 'available' AND NOT ${node}.is_maintenance AND NOT ${node}.is_retired AND ${node}.unreachable_since IS NULL`;
}

/** In SQL: whether a node may be given to a tenant some day. */
export function isInInventory(node: string): string {
  return `${node}.state <> 'removed' AND NOT ${node}.is_retired`;
}

/** In SQL: whether a request waits, and its team may have something new. */
export function isWaiting(request: string): string {
  return `(${request}.state = 'requested' AND NOT EXISTS (SELECT FROM team WHERE team.id = ${request}.team_id AND team.is_suspended))`;
}

/** The requirements that these specs do not meet, each as a phrase. */
export function unmet(asked: BaremetalRequirements, specs: BaremetalHostSpecs): string[] {
  const { gpu_model, ...least } = asked;
  const phrases = Object.entries(least)
    .filter(([name, number]) => number !== undefined && number > specs[name as keyof typeof least])
    .map(([name, number]) => `${name} at least ${number} (it has ${specs[name as keyof typeof least]})`);
  if (gpu_model !== undefined && gpu_model.toLowerCase() !== specs.gpu_model?.toLowerCase()) {
    phrases.unshift(`gpu_model ${gpu_model} (it has ${specs.gpu_model ?? 'no GPUs'})`);
  }
  return phrases;
}
