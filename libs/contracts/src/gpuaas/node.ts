import { ApiProperty } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Instant, ListOf, Nested, NumberedId, OneOf, Text, WholeNumber } from '../fields.js';
import { PageFromOne, Pagination } from '../page.js';

/** Physical GPUs of one board. */
export class NodeGpus {
  @Text({ max: 64, example: 'A100-80GB', description: 'Name and size of the board.' })
  board!: string;

  @WholeNumber({ min: 1, max: 16, example: 8 })
  count!: number;
}

export class RegisterNode {
  @NumberedId({ example: '1' })
  gpuaas_id!: string;

  @Text({
    max: 253,
    pattern: /^[a-z0-9]+(?:(?:\.|-+)[a-z0-9]+)*$/,
    patternHint: 'a host name: lower-case letters and digits, with hyphens and dots between them',
    example: 'gpu-01',
    description: 'Unique in its gpuaas.',
  })
  node_name!: string;

  @ListOf(() => NodeGpus, { min: 1, max: 16 })
  gpus!: NodeGpus[];
}

export class NodePath {
  @NumberedId({ example: '1' })
  node_id!: string;
}

export class ListNodes extends PageFromOne {
  @NumberedId({ optional: true, example: '1' })
  gpuaas_id?: string;
}

export const nodeStatuses = ['registered', 'initialising', 'ready', 'init_failed', 'cordoned'] as const;
export type NodeStatus = (typeof nodeStatuses)[number];

/** Who holds a turn of the whole GPU. */
export class GpuTenant {
  @NumberedId({ example: '42' })
  subscription_id!: string;

  @NumberedId({ nullable: true, example: '7', description: 'null while nothing runs on it.' })
  workload_id!: string | null;
}

/** A part of a GPU that is held. */
export class GpuSlice extends GpuTenant {
  @Text({ max: 64, example: '3g.40gb' })
  profile!: string;

  @ApiProperty({ type: 'integer', example: 4, description: 'First slot: of 8 (or 4) memory slices with MIG, of the replicas with MPS.' })
  start!: number;

  @ApiProperty({ type: 'integer', example: 4, description: 'Slots.' })
  size!: number;

  @ApiProperty({ type: Number, example: 40 })
  v_ram_gb!: number;

  @OneOf(['reserved', 'leased', 'occupied'], {
    description: 'reserved: for a request that waits for the GPU; leased: held and idle; occupied: a workload is on it.',
  })
  state!: 'reserved' | 'leased' | 'occupied';
}

export class Gpu {
  @NumberedId({ example: '1' })
  gpu_id!: string;

  @Text({ max: 64, example: 'GPU-5c1f2f64-6a19-4d3c-8b0e-0c2f8b1d9a77' })
  uuid!: string;

  @Text({ max: 64, example: 'A100-80GB' })
  board!: string;

  @NumberedId({ nullable: true, example: '1', description: 'null: in no pool.' })
  pool_id!: string | null;

  @OneOf(['Spatial', 'Temporal'], { nullable: true, example: 'Spatial', description: 'null: in no pool.' })
  mode!: 'Spatial' | 'Temporal' | null;

  @OneOf(['configured', 'dynamic_fallback'], { description: 'dynamic_fallback: it returns to Spatial by itself.' })
  origin!: 'configured' | 'dynamic_fallback';

  @OneOf(['to_temporal', 'to_spatial'], { nullable: true, description: 'While it switches.' })
  transition!: 'to_temporal' | 'to_spatial' | null;

  @Text({ max: 500, nullable: true, description: 'Why it is not where it should be, for as long as it is not.' })
  reason!: string | null;

  @ListOf(() => GpuSlice, { max: 48, description: 'Empty slots are not listed.' })
  slices!: GpuSlice[];

  @ListOf(() => GpuTenant, { max: 48 })
  tenants!: GpuTenant[];
}

export class GpuNode {
  @NumberedId({ example: '1' })
  node_id!: string;

  @NumberedId({ example: '1' })
  gpuaas_id!: string;

  @Text({ max: 253, example: 'gpu-01' })
  node_name!: string;

  @OneOf(nodeStatuses, { example: 'ready' })
  status!: NodeStatus;

  @Text({ max: 500, nullable: true, description: 'What went wrong last, while it is not ready.' })
  reason!: string | null;

  @Instant({ nullable: true, description: 'When the platform tries again by itself.' })
  retry_at!: string | null;

  @ListOf(() => Gpu, { max: 256 })
  gpus!: Gpu[];

  @Instant()
  created_at!: string;
}

export class NodePage {
  @ListOf(() => GpuNode, { max: 100 })
  data!: GpuNode[];

  @Nested(() => Pagination)
  pagination!: Pagination;
}

export const nodes = contract('gpuaas.nodes', {
  register: operation(RegisterNode, GpuNode),
  list: operation(ListNodes, NodePage),
  get: operation(NodePath, GpuNode),
  initialise: operation(NodePath, GpuNode),
  reset: operation(NodePath, GpuNode),
  cordon: operation(NodePath, GpuNode),
  uncordon: operation(NodePath, GpuNode),
});
