import { IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Flag, Instant, OneOf, Text } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { IncludeEnded, ListOrPageOf, PageFromOneOrAll } from '../page.js';

export const instanceKinds = ['pod', 'vm', 'baremetal'] as const;

class InstancesOf {
  @Uuid({
    optional: true,
    description:
      'Id of the team; without it all teams of the caller. A platform_admin is shown those of all teams, always a page.',
  })
  team_id?: string;
}

export class ListInstances extends IntersectionType(InstancesOf, PageFromOneOrAll, IncludeEnded) {}

export class Instance {
  @Uuid()
  id!: string;

  @Text({ max: 100, example: 'notebook-qwrtz', description: 'Name; of a pod its `pod_name`.' })
  name!: string;

  @OneOf('InstanceKind', instanceKinds, { example: 'pod' })
  kind!: (typeof instanceKinds)[number];

  @Text({ max: 32, example: 'running' })
  status!: string;

  @Uuid()
  team_id!: string;

  @Uuid()
  workspace_id!: string;

  @NumberedId({ example: '1', nullable: true })
  region_id!: string | null;

  @Flag({ optional: true, description: 'Restart of a VM whose guest stops by itself; absent for other kinds.' })
  auto_restart?: boolean;

  @Instant()
  created_at!: string;

  @Instant({
    optional: true,
    description: 'Instant at which a pod or a VM was deleted; absent while it exists, and for bare-metal instances.',
  })
  deleted_at?: string;
}

export class InstanceList extends ListOrPageOf(() => Instance, { max: 1_000_000 }) {}

export const instances = contract('pods.instances', {
  list: operation(ListInstances, InstanceList),
});
