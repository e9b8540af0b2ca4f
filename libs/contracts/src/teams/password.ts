import { contract, operation } from '../contract.js';
import { Email, Flag, Instant, Text } from '../fields.js';
import { Nothing } from '../page.js';

/** What a password must be that is set. */
export const newPassword = {
  min: 12,
  max: 256,
  description: 'At least 12 characters, and none of the common passwords.',
  example: 'correct horse battery staple',
};

export class ChangePassword {
  @Text({ max: 256, example: 'the current password', description: 'Current password.' })
  current!: string;

  @Text(newPassword)
  new!: string;
}

export class LinkToken {
  @Text({ max: 256, description: 'Part of the link’s address after `#`.' })
  token!: string;
}

export class UseLink extends LinkToken {
  @Text({
    ...newPassword,
    description: `${newPassword.description} For an invitation of somebody who has a password: that password.`,
  })
  password!: string;

  @Text({ max: 100, optional: true, description: 'The name of a user who is new.', example: 'Ada' })
  name?: string;
}

export class UseLinkFrom extends UseLink {
  /** Left out by gateways of earlier releases. */
  @Text({
    max: 64,
    optional: true,
    description: 'Address of the client, or the /64 of an IPv6 address.',
    example: '203.0.113.9',
  })
  network?: string;
}

export class ResetPassword {
  @Email({ example: 'ada@example.com' })
  email!: string;
}

/** Whose link it was: the address to log in with. */
export class UsedLink {
  @Email({ example: 'ada@example.com' })
  email!: string;
}

export class CreateLink {
  @Email({ example: 'ada@example.com', description: 'The address of a user.' })
  email!: string;

  @Flag({
    optional: true,
    description:
      'Whether the use of the link also removes the authenticator, the recovery codes and the passkeys, for a user who has lost them.',
  })
  remove_second_factors?: boolean;
}

/** A one-time link, shown once. */
export class OneTimeLink {
  @Text({ max: 2048, description: 'The address of a page. Its token stands after `#`, so that it reaches no log.' })
  url!: string;

  @Instant({ description: 'Instant at which the link expires.' })
  expires_at!: string;
}

export const passwords = contract('teams.passwords', {
  change: operation(ChangePassword, Nothing),
});

export const links = contract('teams.links', {
  check: operation(LinkToken, Nothing),
  use: operation(UseLinkFrom, UsedLink),
  reset: operation(ResetPassword, Nothing),
  create: operation(CreateLink, OneTimeLink),
});
