import { contract, operation } from '../contract.js';
import { Text } from '../fields.js';
import { NumberedId } from '../id-fields.js';

export class FindGpuService {
  @NumberedId({ example: '1' })
  region_id!: string;

  @NumberedId({ optional: true, example: '1', description: 'The oldest GPU service of the region if left out.' })
  gpuaas_id?: string;
}

/** A GPU service with its region. None of these fields ever changes. */
export class GpuServiceOfRegion {
  @NumberedId({ example: '1' })
  gpuaas_id!: string;

  @NumberedId({ example: '1' })
  region_id!: string;

  @Text({ max: 100, example: 'eu-north' })
  region_name!: string;
}

/**
 * For services that place something in a region. Throws `not_found` for an unknown region, and for a GPU service of
 * another one.
 */
export const gpuServices = contract('gpuaas.services', {
  find: operation(FindGpuService, GpuServiceOfRegion),
});
