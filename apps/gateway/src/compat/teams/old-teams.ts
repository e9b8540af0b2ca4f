import { IntersectionType } from '@nestjs/swagger';
import { Email, Flag, ListOf, Nested, Text, Uuid } from '@atoll/contracts';
import type { TeamRole } from '@atoll/contracts';
import { Team } from '@atoll/contracts/teams';
import { ShownFlag, ShownNumber, ShownObject, ShownText, ShownUuid } from '../http/old-answers.js';
import { RoleGiven } from '../roles-and-policies/roles.js';

class General {
  @Uuid({ optional: true, nullable: true, description: 'Id of the image policy.' })
  image_policy_id?: string | null;
}

class ImagePolicyGiven extends General {
  @Nested(() => General, { optional: true, nullable: true, description: 'Another place of `image_policy_id`.' })
  general?: General | null;
}

export class OldNewMember {
  @Email({ example: 'ada@example.com' })
  email!: string;

  @Text({
    min: 0,
    max: 100,
    optional: true,
    nullable: true,
    description: 'Name of the person; that before the @ where it is left out.',
  })
  name?: string | null;

  @RoleGiven()
  role!: Exclude<TeamRole, 'team_owner'>;
}

class DescriptionGiven {
  @Text({ min: 0, max: 1000, multiline: true, optional: true, nullable: true, description: 'Purpose of the team.' })
  description?: string | null;
}

export class OldNewTeam extends IntersectionType(DescriptionGiven, ImagePolicyGiven) {
  @Text({ max: 100, example: 'Research', description: 'Name of the team.' })
  name!: string;

  @ListOf(() => OldNewMember, {
    max: 100,
    optional: true,
    description:
      'Members. Where the operator creates the team, the first team_admin among them, else the first, becomes its owner.',
  })
  members?: OldNewMember[];
}

export class OldTeamChange extends IntersectionType(DescriptionGiven, ImagePolicyGiven) {
  @Text({ max: 100, optional: true, nullable: true, description: 'Name of the team; it stays where it is left out.' })
  name?: string | null;
}

/** The image policy that a request names in either place. */
export function imagePolicyOf({ image_policy_id, general }: ImagePolicyGiven): string | undefined {
  return image_policy_id ?? general?.image_policy_id ?? undefined;
}

class TeamSummary {
  @ShownUuid('Id of the team.')
  id!: string;

  @ShownText('Name of the team.')
  name!: string;

  @ShownText('Purpose of the team.')
  description!: string;

  @ShownFlag('Whether the team is suspended.')
  is_suspended!: boolean;
}

export class OldTeam extends Team {
  @Flag({ description: 'Whether the team is suspended.' })
  suspended!: boolean;

  @ShownObject(() => TeamSummary, 'The team once more.')
  team!: TeamSummary;
}

export function oldTeamOf(team: Team): OldTeam {
  const { id, name, description, is_suspended } = team;
  return { ...team, suspended: is_suspended, team: { id, name, description, is_suspended } };
}

export class OldHolding {
  @ShownNumber('What is in use.')
  used!: number;

  @ShownNumber('Remaining amount; -1 for no limit.', { example: -1 })
  available!: number;
}

export class OldResources {
  @ShownObject(() => OldHolding, 'Cores: not counted.')
  cores!: OldHolding;

  @ShownObject(() => OldHolding, 'Memory: not counted.')
  memory!: OldHolding;

  @ShownObject(() => OldHolding, 'vGPUs that the team holds.')
  gpus!: OldHolding;

  @ShownObject(() => OldHolding, 'Disks: not counted.')
  storage!: OldHolding;

  @ShownObject(() => OldHolding, 'Ephemeral storage: not counted.')
  ephemeral_storage!: OldHolding;

  @ShownObject(() => OldHolding, 'Shared storage in GB.')
  shared_storage!: OldHolding;
}
