import { ApiProperty } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Instant, ListOf, OneOf, Text, WholeNumber } from '../fields.js';
import { NumberedId } from '../id-fields.js';
import { PageFromOne, PageOf } from '../page.js';

/** The boards of the platform, by name and memory size; libs/gpu knows how each can be shared. */
export const boardNames = [
  'A30-24GB',
  'A100-40GB',
  'A100-80GB',
  'H100-80GB',
  'H100-NVL-94GB',
  'GH200-96GB',
  'GH200-144GB',
  'H200-141GB',
  'B200-180GB',
  'L4-24GB',
  'L40S-48GB',
  'A40-48GB',
  'RTX-PRO-6000-96GB',
] as const;

/** Physical GPUs of one board. */
export class NodeGpus {
  @OneOf('BoardName', boardNames, { example: 'A100-80GB', description: 'Name and memory size of the board.' })
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
    description: 'Name of the node, unique in its GPU service.',
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

const nodeStatuses = ['registered', 'initialising', 'ready', 'init_failed', 'cordoned'] as const;
export type NodeStatus = (typeof nodeStatuses)[number];

/** Who holds a turn of the whole GPU. */
export class GpuTenant {
  @NumberedId({ example: '42' })
  subscription_id!: string;

  @NumberedId({
    nullable: true,
    example: '7',
    description: 'Id of the workload that runs on it; null where none does.',
  })
  workload_id!: string | null;
}

/** A part of a GPU that is held. */
export class GpuSlice extends GpuTenant {
  @Text({ max: 64, example: '3g.40gb' })
  profile!: string;

  @ApiProperty({
    type: 'integer',
    example: 4,
    description: 'First slot, from 0: of 8 (or 4) memory slices with MIG, of the replicas with MPS.',
  })
  start!: number;

  @ApiProperty({ type: 'integer', example: 4, description: 'Number of slots.' })
  size!: number;

  @ApiProperty({ type: Number, example: 40 })
  v_ram_gb!: number;

  @OneOf('SliceState', ['reserved', 'leased', 'occupied'], {
    description:
      'State of the slice: reserved for a request that waits for the GPU, leased and idle, or occupied by a workload.',
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

  @NumberedId({ nullable: true, example: '1', description: 'Id of the pool; null in no pool.' })
  pool_id!: string | null;

  @OneOf('SharingMode', ['Spatial', 'Temporal'], {
    nullable: true,
    example: 'Spatial',
    description: 'Sharing mode; null in no pool.',
  })
  mode!: 'Spatial' | 'Temporal' | null;

  @OneOf('ModeOrigin', ['configured', 'dynamic_fallback'], {
    description: 'Origin of the mode: configured, or a fallback that ends by itself.',
  })
  origin!: 'configured' | 'dynamic_fallback';

  @OneOf('ModeTransition', ['preparing', 'to_temporal', 'to_spatial'], {
    nullable: true,
    description: 'Change in progress: preparation before its first use, or a change of the sharing mode; null at rest.',
  })
  transition!: 'preparing' | 'to_temporal' | 'to_spatial' | null;

  @Text({
    max: 500,
    nullable: true,
    description: 'Reason why the GPU is not in its mode yet, or could not fall back last; null otherwise.',
  })
  reason!: string | null;

  @ListOf(() => GpuSlice, { max: 48, description: 'Slices that are held; empty slots are not listed.' })
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

  @OneOf('NodeStatus', nodeStatuses, { example: 'ready' })
  status!: NodeStatus;

  @Text({
    max: 500,
    nullable: true,
    description:
      'Reason of the last failure of a node that is not ready, or that failed at what it was last asked to do for a subscription or workload; null otherwise.',
  })
  reason!: string | null;

  @Instant({ nullable: true, description: 'Instant of the next automatic attempt; null where there is none.' })
  retry_at!: string | null;

  @ListOf(() => Gpu, { max: 256 })
  gpus!: Gpu[];

  @Instant()
  created_at!: string;
}

export class NodePage extends PageOf(() => GpuNode) {}

export const nodes = contract('gpuaas.nodes', {
  register: operation(RegisterNode, GpuNode),
  list: operation(ListNodes, NodePage),
  get: operation(NodePath, GpuNode),
  initialise: operation(NodePath, GpuNode),
  reset: operation(NodePath, GpuNode),
  cordon: operation(NodePath, GpuNode),
  uncordon: operation(NodePath, GpuNode),
});
