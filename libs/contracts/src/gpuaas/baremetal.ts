import { ApiProperty, IntersectionType } from '@nestjs/swagger';
import { contract, operation } from '../contract.js';
import { Flag, Instant, ListOf, Nested, OneOf, Text } from '../fields.js';
import { NumberedId, Uuid } from '../id-fields.js';
import { IncludeEnded, PageFromOne, PageOf } from '../page.js';
import { BaremetalAttempt } from './baremetal-attempt.js';
import { BaremetalHostSpecs, BaremetalRequirements } from './baremetal-specs.js';

const aTeam = { example: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' };

export class RequestBaremetal {
  @Uuid(aTeam)
  team_id!: string;

  @Uuid({ optional: true, description: 'Id of the workspace, the team’s default one unless given.' })
  workspace_id?: string;

  @NumberedId({ optional: true, example: '1', description: 'Id of the region, any unless given.' })
  region_id?: string;

  @Text({ max: 100, example: 'training' })
  name!: string;

  @Nested(() => BaremetalRequirements, {
    description: 'Requirements, at least one. Text must be equal, ignoring case; numbers are minimums.',
  })
  specs!: BaremetalRequirements;
}

export class BaremetalPath {
  @Uuid({ description: 'Id of the instance.' })
  instance_id!: string;
}

/** As `BaremetalRequirements`, in responses. */
export class RequestedSpecs extends BaremetalRequirements {}

class OfTeam {
  @Uuid(aTeam)
  team_id!: string;
}

export class ListBaremetal extends IntersectionType(OfTeam, PageFromOne, IncludeEnded) {}

export const baremetalStatuses = [
  'Requested',
  'Provisioning',
  'Active',
  'Failed',
  'Releasing',
  'Released',
  'Cancelled',
] as const;
export type BaremetalStatus = (typeof baremetalStatuses)[number];

export class BaremetalError {
  @Text({ max: 64, example: 'host_refused', description: 'Code of the error.' })
  code!: string;

  @Text({
    max: 500,
    example: 'The host refuses connections on its SSH port.',
    description: 'Sentence that says what went wrong.',
  })
  message!: string;

  @Text({ max: 64, example: 'reach', description: 'Step that failed.' })
  step!: string;

  @Instant({ description: 'Instant of the failure.' })
  at!: string;
}

export class BaremetalInstance {
  @Uuid({ description: 'Id of the instance.' })
  instance_id!: string;

  @Uuid(aTeam)
  team_id!: string;

  @Uuid()
  workspace_id!: string;

  @NumberedId({ nullable: true, example: '1', description: 'Id of the region; null while it waits for a node of any.' })
  region_id!: string | null;

  @Text({ max: 100, example: 'training' })
  name!: string;

  @OneOf('BaremetalStatus', baremetalStatuses, { example: 'Active', description: 'Status.' })
  status!: BaremetalStatus;

  @Text({ max: 500, nullable: true, description: 'Reason of the failure, or of the wait.' })
  reason!: string | null;

  @Nested(() => BaremetalError, { nullable: true, description: 'Last error of provisioning.' })
  error!: BaremetalError | null;

  @Nested(() => RequestedSpecs, { description: 'Requirements, as requested.' })
  specs!: RequestedSpecs;

  @Nested(() => BaremetalHostSpecs, { nullable: true, description: 'Specs of its host, or of the one that it was on.' })
  host_specs!: BaremetalHostSpecs | null;

  @Instant({
    nullable: true,
    description: 'Instant since which the host cannot be reached; null while it can. The instance stays Active.',
  })
  unreachable_since!: string | null;

  @Flag({ description: 'Whether the host still has outdated SSH keys.' })
  keys_stale!: boolean;

  @ListOf(() => BaremetalAttempt, { max: 100, description: 'Ledger of what was tried on the host; the last 100.' })
  attempts!: BaremetalAttempt[];

  @Instant()
  created_at!: string;

  @Instant({ nullable: true, description: 'Instant at which it became Active and billing began.' })
  active_since!: string | null;

  @Instant({ nullable: true, description: 'Instant of its end; null before it.' })
  ended_at!: string | null;
}

export class BaremetalPage extends PageOf(() => BaremetalInstance) {}

export class BaremetalCredentials {
  @Text({ max: 253, example: 'metal-01.example', description: 'Host name or IP address.' })
  host!: string;

  @ApiProperty({ type: 'integer', example: 22, description: 'SSH port.' })
  port!: number;

  @Text({ max: 32, example: 'atl-4f1c9a7e02', description: 'Name of the user.' })
  username!: string;

  @Text({ max: 100, description: 'Password of the user.' })
  ssh_password!: string;
}

export const baremetal = contract('gpuaas.baremetal', {
  request: operation(RequestBaremetal, BaremetalInstance),
  list: operation(ListBaremetal, BaremetalPage),
  get: operation(BaremetalPath, BaremetalInstance),
  end: operation(BaremetalPath, BaremetalInstance),
  credentials: operation(BaremetalPath, BaremetalCredentials),
});
