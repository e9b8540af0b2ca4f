import { Email, Flag, Nested, Text, Uuid, type TeamRole } from '@atoll/contracts';
import { ShownFlag, ShownInstant, ShownText } from '../http/old-answers.js';
import { RoleGiven } from '../roles-and-policies/roles.js';

const nameField = { min: 0, max: 100, optional: true, nullable: true, description: 'Name of the person.' } as const;
const newPassword = {
  min: 12,
  max: 256,
  description: 'At least 12 characters, and none of the common passwords.',
} as const;

class OnboardConfig {
  @Text(nameField)
  name?: string | null;

  @Text(newPassword)
  password!: string;
}

class UserDetails {
  @Flag({
    optional: true,
    nullable: true,
    description: 'Whether the user gets the password of `onboard_config` at once.',
  })
  pre_onboard?: boolean | null;

  @Nested(() => OnboardConfig, {
    optional: true,
    nullable: true,
    description: 'Name and first password; read with `pre_onboard` alone.',
  })
  onboard_config?: OnboardConfig | null;
}

export class OldLinkRequest {
  @Email({ example: 'ada@example.com' })
  email!: string;

  @Flag({
    optional: true,
    nullable: true,
    description: 'Whether the link goes by mail too, where the platform has a mail server.',
  })
  send_email_invite?: boolean | null;

  @Uuid({ optional: true, nullable: true, description: 'Team that the person joins.' })
  team_id?: string | null;

  @RoleGiven({ optional: true, nullable: true })
  role_id?: Exclude<TeamRole, 'team_owner'> | null;

  @Nested(() => UserDetails, {
    optional: true,
    nullable: true,
    description: 'Account of a person, with a password.',
  })
  user_details?: UserDetails | null;
}

export class OldLink {
  @ShownText('Address of a page; the link works once.')
  url!: string;

  @ShownInstant('Instant at which the link expires.')
  expires_at!: string;

  @ShownFlag('Whether the person has no password yet.')
  should_onboard!: boolean;

  @ShownFlag('Whether the log-in of the person needs a second factor.')
  two_fa_required!: boolean;
}

/** A first password by the operator, or another in place of the caller's own. */
export class OldOnboarding {
  @Email({ example: 'ada@example.com' })
  email!: string;

  @Text(nameField)
  name?: string | null;

  @Text({ ...newPassword, optional: true, nullable: true, description: `First password. ${newPassword.description}` })
  password?: string | null;

  @Text({ max: 256, optional: true, nullable: true, description: 'Password so far; with `new_password`.' })
  old_password?: string | null;

  @Text({
    ...newPassword,
    optional: true,
    nullable: true,
    description: `Password in place of \`old_password\`. ${newPassword.description}`,
  })
  new_password?: string | null;
}
