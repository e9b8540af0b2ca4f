import { IntersectionType } from '@nestjs/swagger';
import { contract, event, operation } from '../contract.js';
import { Flag, Instant, ListOf, OneOf, Revision, Text, WholeNumber } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { imageReference } from '../image-reference.js';
import { PageFromOne, PageOf } from '../page.js';
import { ListInRegion } from './list-in-region.js';
import { Amount, dnsLabel, dnsLabelHint } from './pod-fields.js';
import { PodMount } from './pod.js';

const nameField = {
  max: 57,
  pattern: dnsLabel,
  patternHint: dnsLabelHint,
  example: 'head-node',
  description: 'Name of the VM, unique in its team.',
};
const flavourField = { max: 40, pattern: dnsLabel, patternHint: dnsLabelHint, example: 'small' };
const imageField = {
  ...imageReference,
  example: 'docker.io/library/debian:13',
  description: 'An image that the team’s policy allows.',
};

/** What a VM is made of. Its SKU is `vm.` and its name. */
export class CreateFlavour {
  @Text({ ...flavourField, description: 'Name of the flavour, unique. A VM of it is billed as the SKU `vm.<name>`.' })
  name!: string;

  @WholeNumber({ min: 1, max: 512, example: 4, description: 'Number of virtual CPUs.' })
  vcpus!: number;

  @Amount({ min: 0.5, max: 8_192, example: 16, description: 'Memory in GB, 10^9 bytes.' })
  memory_gb!: number;
}

export class Flavour extends CreateFlavour {
  @Instant()
  created_at!: string;
}

export class FlavourPage extends PageOf(() => Flavour) {}

/** As it is requested. */
class VmMount extends PodMount {}

/** As it is answered. */
class MountedByVm extends PodMount {}

export class CreateVm {
  @Uuid({ example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' })
  team_id!: string;

  @Uuid({ optional: true, description: 'The team’s default workspace if left out.' })
  workspace_id?: string;

  @NumberedId({ example: '1', description: 'The region in which the VM runs.' })
  region_id!: string;

  @NumberedId({
    optional: true,
    example: '1',
    description: 'The GPU service whose cluster runs the VM; the oldest one of the region if left out.',
  })
  gpuaas_id?: string;

  @Text(nameField)
  name!: string;

  @Text({ ...flavourField, description: 'Name of the flavour.' })
  flavour!: string;

  @Text(imageField)
  image!: string;

  @Flag({
    optional: true,
    example: true,
    description: 'Whether it starts again when its guest stops by itself; false if left out.',
  })
  auto_restart?: boolean;

  @ListOf(() => VmMount, { max: 20, optional: true, description: 'Shared volumes of its GPU service.' })
  volumes?: VmMount[];
}

const vmStatuses = ['pending', 'running', 'stopping', 'stopped', 'failed'] as const;
export type VmStatus = (typeof vmStatuses)[number];

export class Vm {
  @Uuid()
  instance_id!: string;

  @Text(nameField)
  name!: string;

  @Uuid()
  team_id!: string;

  @Uuid()
  workspace_id!: string;

  @NumberedId({ example: '1' })
  region_id!: string;

  @NumberedId({ example: '1' })
  gpuaas_id!: string;

  @Text({ ...flavourField, description: 'Name of the flavour.' })
  flavour!: string;

  @WholeNumber({ min: 1, max: 512, example: 4, description: 'Number of virtual CPUs.' })
  vcpus!: number;

  @Amount({ min: 0.5, max: 8_192, example: 16, description: 'Memory in GB, 10^9 bytes.' })
  memory_gb!: number;

  @Text(imageField)
  image!: string;

  @Flag({ description: 'Whether it starts again when its guest stops by itself.' })
  auto_restart!: boolean;

  @OneOf('VmStatus', vmStatuses, { example: 'running' })
  status!: VmStatus;

  @Text({ max: 500, nullable: true, description: 'Reason why it failed, stopped or waits.' })
  reason!: string | null;

  @WholeNumber({ min: 0, max: 1_000_000_000, description: 'Restarts since it was last started.' })
  restarts!: number;

  @ListOf(() => MountedByVm, { max: 20, description: 'Shared volumes that it mounts.' })
  volumes!: MountedByVm[];

  @Instant()
  created_at!: string;

  @Instant({ nullable: true, description: 'Instant at which the present or last run began.' })
  started_at!: string | null;

  @Instant({ nullable: true, description: 'Instant at which the VM was deleted; null while it exists.' })
  deleted_at!: string | null;
}

export class VmPage extends PageOf(() => Vm) {}

export class ListVms extends ListInRegion {}

export class VmPath {
  @Uuid()
  instance_id!: string;
}

export class UpdateVmBody {
  @Text({ ...nameField, optional: true })
  name?: string;

  @Flag({ optional: true, example: true, description: 'Whether it starts again when its guest stops by itself.' })
  auto_restart?: boolean;
}

export class UpdateVm extends IntersectionType(VmPath, UpdateVmBody) {}

export const vms = contract('pods.vms', {
  create: operation(CreateVm, Vm),
  list: operation(ListVms, VmPage),
  get: operation(VmPath, Vm),
  update: operation(UpdateVm, Vm),
  start: operation(VmPath, Vm),
  stop: operation(VmPath, Vm),
  restart: operation(VmPath, Vm),
  delete: operation(VmPath, Vm),
  createFlavour: operation(CreateFlavour, Flavour),
  listFlavours: operation(PageFromOne, FlavourPage),
});

export class VmChanged {
  @Uuid()
  instance_id!: string;

  @Revision(0)
  revision!: number;

  @Uuid()
  team_id!: string;

  @Text({ max: 100 })
  name!: string;

  @Flag()
  is_running!: boolean;

  @Instant()
  created_at!: string;
}
/** A VM was created or renamed, or begins or ceases to run. Feeds `compatible-instances` of gpuaas. */
export const vmChanged = event('pods.vm_changed', VmChanged);
