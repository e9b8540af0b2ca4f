import { ApiProperty } from '@nestjs/swagger';
import { Text, Uuid } from '@atoll/contracts';
import { ShownInstant, ShownInteger, ShownList, ShownObject, ShownText } from '../http/old-answers.js';
import { PerPage } from '../http/old-pages.js';
import { NamedOne } from '../roles-and-policies/policies.js';

export class UnifiedQuery extends PerPage {
  @Uuid({ optional: true, description: 'Id of the team; all teams if left out, for a platform_admin.' })
  team_id?: string;
}

/** `i-` before the id of the instance; it may be left out. */
export class UnifiedPath {
  @Text({
    max: 40,
    pattern: /^(?:i-)?[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$/,
    patternHint: 'i- and a UUID',
    example: 'i-0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10',
  })
  id!: string;
}

export const unifiedId = (id: string): string => `i-${id}`;
export const instanceIdOf = ({ id }: UnifiedPath): string => id.replace(/^i-/, '').toLowerCase();

export class RenameInstance {
  @Text({ max: 57, description: 'New name.' })
  name!: string;
}

class UnifiedRegion {
  @ShownInteger('Id of the region.', { nullable: true })
  id!: number | null;

  @ShownText('Name of the region.')
  region_name!: string;

  @ShownText('City of the region.')
  city!: string;

  @ShownText('Country of the region.')
  country!: string;

  @ShownText('Country of the region (ISO 3166-1 alpha-2); empty where it is not known.')
  country_code!: string;
}

class UnifiedService {
  @ShownInteger('Id of the service.')
  id!: number;

  @ShownText('Name of the service.')
  name!: string;

  @ShownText('Kind of the instance.', { example: 'pod' })
  type!: string;
}

class UnifiedPodInfo {
  @ShownInteger('Id of the pool.', { nullable: true })
  pool_id!: number | null;

  @ShownText('Name of the pool.')
  pool_name!: string;

  @ShownText('Board of the pool.')
  model!: string;

  @ShownText('Vendor of the board.')
  vendor!: string;

  @ShownText('Name of the pod.')
  provisioned_service_name!: string;

  @ShownInteger('Number of its exposed services.')
  exposed_count!: number;

  @ShownInteger('Number of its vGPUs.')
  vgpu_count!: number;

  @ShownText('Memory of each vGPU in GB, as text.')
  vram_gb!: string;
}

class UnifiedInstanceType {
  @ShownText('Name of the flavour.')
  id!: string;

  @ShownText('Name of the flavour.')
  name!: string;

  @ShownInteger('Number of virtual CPUs.')
  cpu_cores!: number;

  @ShownInteger('Memory in MiB.')
  ram_mb!: number;
}

/** What a team rents: a pod, a VM or a bare-metal host. */
export class Unified {
  @ShownText('Id of the instance: i- and a UUID.')
  id!: string;

  @ShownText('Name of the instance.')
  name!: string;

  @ShownInstant('Instant of creation.')
  created_at!: string;

  @ShownText('Status of the instance.', { example: 'running' })
  status!: string;

  @ShownText('Kind of the instance.', { example: 'pod' })
  nature!: string;

  @ApiProperty({ type: String, isArray: true, description: 'Addresses: not known here.' })
  ip!: string[];

  @ShownObject(() => UnifiedService, 'The subscription of a pod; absent for other kinds.', { optional: true })
  service?: UnifiedService;

  @ShownObject(() => NamedOne, 'The team.')
  team!: NamedOne;

  @ShownObject(() => UnifiedRegion, 'The region.')
  region!: UnifiedRegion;

  @ShownObject(() => NamedOne, 'The workspace.')
  workspace!: NamedOne;

  @ShownObject(() => UnifiedPodInfo, 'Resources of a pod; absent for other kinds.', { optional: true })
  pod_info?: UnifiedPodInfo;

  @ShownObject(() => UnifiedInstanceType, 'The flavour of a VM; absent for other kinds.', { optional: true })
  instance_type?: UnifiedInstanceType;
}

class UnifiedCount {
  @ShownText('Status.', { example: 'running' })
  status!: string;

  @ShownInteger('Number of instances.')
  count!: number;
}

export class UnifiedPage {
  @ShownList(() => Unified, 'Instances of the page.')
  items!: Unified[];

  @ShownInteger('Number of all instances.')
  total_items!: number;

  @ShownList(() => UnifiedCount, 'Number of all instances by status.')
  status_counts!: UnifiedCount[];
}

class UnifiedVolume {
  @ShownInteger('Id of the volume.')
  id!: number;

  @ShownText('Name of the volume.')
  name!: string;

  @ShownText('Path in the pod or VM.')
  mount_point!: string;

  @ShownInteger('Size in GB; null for a volume that is gone.', { nullable: true })
  size_in_gb!: number | null;

  @ShownText('Status of the volume.')
  status!: string;

  @ShownText('Last operation of the mount: attach.')
  mount_operation!: string;

  @ShownText('State of the mount.')
  mount_status!: string;

  @ShownText('Error of the mount: none.', { nullable: true })
  mount_error!: string | null;
}

export class UnifiedDetails extends Unified {
  @ShownInteger('Root disk: not known.', { nullable: true })
  root_disk!: number | null;

  @ShownList(() => UnifiedVolume, 'Shared volumes of a pod or VM.')
  shared_volumes!: UnifiedVolume[];
}

export class UnifiedExposed {
  @ShownInteger('Id of the exposed service.')
  id!: number;

  @ShownText('Name of the service.')
  service_name!: string;

  @ShownText('Public host.')
  ip!: string;

  @ShownInteger('Port on which the pod listens.')
  internal_port!: number;

  @ShownInteger('Port on the public host.')
  external_port!: number;

  @ShownText('Protocol that the pod speaks.')
  protocol!: string;

  @ShownText('Type of the service: http, https or NodePort.')
  type!: string;

  @ShownText('State of the service.')
  status!: string;

  @ShownInstant('Instant of creation.')
  created_at!: string;
}

export class OldCredentials {
  @ShownText('Host.')
  ip!: string;

  @ShownInteger('SSH port.')
  port!: number;

  @ShownText('Name of the user.')
  username!: string;

  @ShownText('Password; empty where the SSH keys of the user open the connection.')
  password!: string;
}
