import { ListOf, OneOf, TeamPath, Text, Uuid, validateWire, type TeamRole } from '@atoll/contracts';
import { type FoundMember, type NewMember } from '@atoll/contracts/teams';
import { invalidInput, type FieldError } from '@atoll/errors';
import {
  ShownFlag,
  ShownInstant,
  ShownInteger,
  ShownList,
  ShownObject,
  ShownText,
  ShownUuid,
} from '../http/old-answers.js';
import { withFaults } from '../http/old-faults.js';
import { OldPage } from '../http/old-pages.js';
import { OldRole, oldRoleOf, RoleGiven } from '../roles-and-policies/roles.js';
import { OldNewMember } from './old-teams.js';

class People {
  @ListOf(() => OldNewMember, { min: 1, max: 100 })
  members!: OldNewMember[];
}

/** The body of an invitation: a JSON list. */
export class Invitations {
  constructor(readonly members: OldNewMember[]) {}

  /** Faults name the place in the list: `0.email`. */
  static fromWire(plain: unknown): Invitations {
    if (!Array.isArray(plain))
      throw invalidInput([{ path: '', code: 'isArray', message: 'the body must be a JSON list of people' }]);
    try {
      return new Invitations(validateWire(People, { members: plain }, { unknownFields: 'omit' }).members);
    } catch (error) {
      throw withFaults(error, inList);
    }
  }
}

/** A fault in the field `members`, as one of a body that is their list. */
export function inList({ path, code, message }: FieldError): FieldError {
  const place = (text: string): string => text.replace(/\bmembers\./g, '').replace(/\bmembers\b/g, 'the list');
  return { path: place(path), code, message: place(message) };
}

/** A person without a name is named by the address. */
export function namedMember({ email, name, role }: OldNewMember): NewMember {
  const given = (name ?? '').trim();
  return { email, role, name: given === '' ? (email.split('@', 1)[0] ?? email).slice(0, 100) : given };
}

export class OldMemberPath extends TeamPath {
  @Uuid({ description: 'Id of the user.' })
  user_id!: string;
}

export class OldMembersQuery extends OldPage {
  @Text({ min: 0, max: 300, optional: true, description: 'Part of the name or of the e-mail address, in either case.' })
  search?: string;
}

export class RoleChange {
  @RoleGiven()
  role_id!: Exclude<TeamRole, 'team_owner'>;
}

export class StatusChange {
  @OneOf('MembershipChange', ['removed', 'active'], {
    description: 'removed ends the membership; active changes nothing.',
  })
  status!: 'removed' | 'active';
}

class OldUser {
  @ShownUuid('Id of the user.')
  id!: string;

  @ShownText('Name of the user.')
  name!: string;

  @ShownText('E-mail address.')
  email!: string;

  @ShownFlag('Whether the user has accepted the invitation.')
  onboarded!: boolean;

  @ShownFlag('Whether the log-in needs a second factor; false to a caller who may not manage the team.')
  two_factor_enabled!: boolean;

  @ShownText('Time zone (IANA).', { example: 'UTC' })
  timezone!: string;
}

export class OldMember {
  @ShownUuid('Id of the user.')
  user_id!: string;

  @ShownUuid('Id of the team.')
  team_id!: string;

  @ShownUuid('Id of the role.')
  role_id!: string;

  @ShownText('State of the membership: active or invited.', { example: 'active' })
  status!: string;

  @ShownInstant('Instant of the invitation.')
  invited_at!: string;

  @ShownInstant('Instant from which the membership counts; null until the invitation is accepted.', { nullable: true })
  joined_at!: string | null;

  @ShownInstant('Instant at which the membership ends: none.', { nullable: true })
  expires_at!: string | null;

  @ShownObject(() => OldUser, 'The user.')
  user!: OldUser;

  @ShownObject(() => OldRole, 'The role.')
  role!: OldRole;
}

export class OldMemberPage {
  @ShownList(() => OldMember, 'Members of the page.')
  members!: OldMember[];

  @ShownInteger('Number of all members that match.')
  count!: number;
}

export function oldMemberOf(teamId: string, member: FoundMember): OldMember {
  const role = oldRoleOf(member.role);
  const isActive = member.status === 'active';
  return {
    user_id: member.user_id,
    team_id: teamId,
    role_id: role.id,
    status: member.status,
    invited_at: member.created_at,
    joined_at: member.joined_at,
    expires_at: null,
    user: {
      id: member.user_id,
      name: member.name,
      email: member.email,
      onboarded: isActive,
      two_factor_enabled: member.second_factor,
      timezone: member.timezone,
    },
    role,
  };
}
