import type { PoolsReport, StorageReport } from '@atoll/contracts/billing';
import { uniqueNames } from './reports.js';

/** Names of the pools of a report, each once. */
export function poolNames({ pools }: PoolsReport): string[] {
  return uniqueNames(pools.map(({ pool_id, pool_name }) => ({ id: pool_id, name: pool_name ?? `Pool ${pool_id}` })));
}

/** Names of the volumes of a report, each once. */
export function volumeNames({ volumes }: StorageReport): string[] {
  return uniqueNames(volumes.map(({ volume_id, name }) => ({ id: volume_id, name: name ?? `Volume ${volume_id}` })));
}
