import { notFound } from '@atoll/contracts';
import type { EntityManager } from 'typeorm';
import { RegionEntity } from './region.entity.js';

/** Throws `not_found` where a region is named that does not exist. */
export async function requireRegion(manager: EntityManager, regionId: string | undefined): Promise<void> {
  if (regionId !== undefined && !(await manager.existsBy(RegionEntity, { regionId }))) throw notFound('region');
}
