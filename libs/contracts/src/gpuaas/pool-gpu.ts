import { ApiProperty, IntersectionType, OmitType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { ListOf, OneOf } from '../fields.js';
import { NumberedId } from '../id-fields.js';
import { PageFromOne, PageOf } from '../page.js';
import { TeamPath } from '../team-path.js';
import { Gpu, GpuSlice } from './node.js';

/** Who holds a turn, as far as the team may know. */
export class PoolGpuTenant {
  @NumberedId({
    nullable: true,
    example: '42',
    description: 'Id of the subscription; null where another team holds it.',
  })
  subscription_id!: string | null;

  @NumberedId({
    nullable: true,
    example: '7',
    description: 'Id of the workload; null where none runs, and where another team holds it.',
  })
  workload_id!: string | null;
}

/** A part of a GPU that is held, by this team or by another. */
export class PoolGpuSlice extends IntersectionType(
  OmitType(GpuSlice, ['subscription_id', 'workload_id', 'state'] as const),
  PoolGpuTenant,
) {
  @OneOf('SliceState', ['reserved', 'leased', 'occupied'], {
    nullable: true,
    description: 'State of the slice; null where another team holds it.',
  })
  state!: GpuSlice['state'] | null;
}

/** A GPU of a pool as a team sees it: the held slices, and which of them are the team's own. */
export class PoolGpu extends OmitType(Gpu, ['uuid', 'pool_id', 'reason', 'slices', 'tenants'] as const) {
  @ApiProperty({
    type: 'integer',
    example: 8,
    description: 'Number of slots: memory slices with MIG, replicas with MPS, turns in Temporal.',
  })
  slots!: number;

  @ListOf(() => PoolGpuSlice, { max: 48, description: 'Slices that are held; empty slots are not listed.' })
  slices!: PoolGpuSlice[];

  @ListOf(() => PoolGpuTenant, { max: 48, description: 'Turns that are held.' })
  tenants!: PoolGpuTenant[];
}

export class PoolGpuPath {
  @NumberedId({ example: '1' })
  pool_id!: string;
}

export class PoolGpusQuery extends IntersectionType(TeamPath, PageFromOne) {}

export class ListPoolGpus extends IntersectionType(PoolGpuPath, PoolGpusQuery) {}

export class PoolGpuPage extends PageOf(() => PoolGpu) {}

export const poolGpus = contract('gpuaas.pool_gpus', {
  list: operation(ListPoolGpus, PoolGpuPage),
});
