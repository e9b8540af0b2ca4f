import { teamRoles, type TeamRole } from '../caller.js';
import { contract, operation } from '../contract.js';
import { Email, Flag, Instant, ListOf, Nested, OneOf, Text, WholeNumber } from '../fields.js';
import { Uuid } from '../id-fields.js';
import { Nothing } from '../page.js';
import { KeyTerms } from './member.js';
import { memberStatuses, type MemberStatus } from './team.js';

const platformRoles = ['platform_admin', 'user'] as const;
export type PlatformRole = (typeof platformRoles)[number];

const timezone = {
  max: 64,
  format: 'iana-time-zone',
  description: 'Name in the IANA time zone database, links included.',
  example: 'Asia/Kathmandu',
};

export class UserTeam {
  @Uuid()
  id!: string;

  @Text({ max: 100, example: 'Research' })
  name!: string;

  @OneOf('TeamRole', teamRoles, { example: 'team_owner' })
  role!: TeamRole;

  @OneOf('MemberStatus', memberStatuses, {
    example: 'active',
    description: 'State of the membership: `invited` until the user has accepted.',
  })
  status!: MemberStatus;
}

/** What a user has besides a password. */
export class UserSecondFactor {
  @Flag({
    example: true,
    description: 'Whether an authenticator app is set up: a password log-in then needs a code too.',
  })
  is_set!: boolean;

  @WholeNumber({ min: 0, max: 1_000, example: 10, description: 'Number of recovery codes that were not used.' })
  recovery_codes!: number;

  @WholeNumber({ min: 0, max: 1_000_000, example: 1, description: 'Number of passkeys.' })
  passkeys!: number;
}

export class User {
  @Uuid()
  id!: string;

  @Email({ example: 'ada@example.com' })
  email!: string;

  @Text({ max: 100, example: 'Ada' })
  name!: string;

  @Text(timezone)
  timezone!: string;

  @OneOf('PlatformRole', platformRoles, { example: 'user' })
  role!: PlatformRole;

  @ListOf(() => UserTeam, {
    max: 300,
    description:
      'The first 200 teams that the user has joined, and the first 100 that have invited the user and that the user has not joined. `GET /team` lists all that the user has joined.',
  })
  teams!: UserTeam[];

  @WholeNumber({
    min: 0,
    max: 1_000_000_000,
    description: 'Number of physical GPUs on which these teams hold capacity now.',
    example: 0,
  })
  card_count!: number;

  @Nested(() => UserSecondFactor, {
    nullable: true,
    description: 'Second factors of the user; null for a key that opens one team only.',
  })
  second_factor!: UserSecondFactor | null;

  @Instant()
  created_at!: string;
}

export class UpdateProfile {
  @Text({ max: 100, optional: true, example: 'Ada' })
  name?: string;

  @Text({ ...timezone, optional: true })
  timezone?: string;
}

/** A key that acts for its user as a whole. */
export class UserKey {
  @Text({
    max: 64,
    description: 'API key: in full in the response that creates it, masked everywhere else.',
    example: 'atl_ab12…wxyz',
  })
  api_key!: string;

  @Flag()
  api_token!: boolean;

  @Instant({ nullable: true })
  expiry_date!: string | null;

  @Text({ min: 0, max: 4096, example: '' })
  ip_whitelist!: string;
}

export const users = contract('teams.users', {
  profile: operation(Nothing, User),
  updateProfile: operation(UpdateProfile, User),
  issueKey: operation(KeyTerms, UserKey),
  revokeKey: operation(Nothing, Nothing),
});
