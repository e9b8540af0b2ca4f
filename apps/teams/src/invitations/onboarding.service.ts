import {
  notFound,
  requirePlatformAdmin,
  requireUser,
  type CallContext,
  type Nothing,
  type UserCaller,
} from '@atoll/contracts';
import { credentialsChanged, type OnboardUser, type WelcomedUser, type WelcomeUser } from '@atoll/contracts/teams';
import { Transactions, Writers } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { requireLinkCredential } from '../api-keys/live-credential.js';
import { TeamChanges } from '../changes/team-changes.js';
import { MailBox } from '../mail/mail-box.js';
import { MembersService } from '../members/member.service.js';
import { MembershipEntity } from '../model/membership.entity.js';
import { UserEntity } from '../model/user.entity.js';
import { refuseCommon } from '../passwords/common-passwords.js';
import { PasswordHashes } from '../passwords/password-hashes.service.js';
import { PasswordsService } from '../passwords/password.service.js';
import { LinkTokens } from '../tokens/link-tokens.js';
import { UserRegistry } from '../users/user-registry.js';

/** Whether the user `$1` has a password, and a second factor. */
const standingQuery = `SELECT EXISTS (SELECT FROM password WHERE user_id = $1) AS has_password,
  EXISTS (SELECT FROM second_factor WHERE user_id = $1 AND is_confirmed) AS has_second_factor`;

type Standing = Pick<WelcomedUser, 'has_password' | 'has_second_factor'>;

/** A first password, ready to be stored. */
interface FirstPassword {
  hash: string;
  name: string | undefined;
}

/** Accounts that the operator opens for people: as for one-time links, the operator's word proves the address. */
@Injectable()
export class OnboardingService {
  private readonly logger = new Logger('Sessions');

  constructor(
    private readonly transactions: Transactions,
    private readonly writers: Writers,
    private readonly changes: TeamChanges,
    private readonly registry: UserRegistry,
    private readonly members: MembersService,
    private readonly hashes: PasswordHashes,
    private readonly passwords: PasswordsService,
    private readonly links: LinkTokens,
    private readonly mail: MailBox,
    private readonly rpc: Rpc,
  ) {}

  async welcome(asked: WelcomeUser, context: CallContext): Promise<WelcomedUser> {
    const caller = requireOperator(context);
    const first = asked.password === undefined ? undefined : await this.firstPassword(asked.password, asked.name);
    const { userId, ...welcomed } = await this.writers.run(asked.team_id ?? caller.userId, context, async (manager) => {
      await requireLinkCredential(manager, caller, asked);
      return this.open(manager, asked, first, context);
    });
    this.rpc.publish(credentialsChanged, { user_id: userId });
    return welcomed;
  }

  async onboard({ email, name, password }: OnboardUser, context: CallContext): Promise<Nothing> {
    const caller = requireOperator(context);
    const first = await this.firstPassword(password, name);
    const userId = await this.transactions.run(async (manager) => {
      await requireLinkCredential(manager, caller, { email });
      const user = await manager.findOne(UserEntity, { where: { email }, lock: { mode: 'for_no_key_update' } });
      if (!user) throw notFound('user');
      if ((await standingOf(manager, user.id)).has_password)
        throw new AppError('conflict', 'This user has a password already.');
      await this.setFirst(manager, user.id, first, context);
      return user.id;
    });
    this.rpc.publish(credentialsChanged, { user_id: userId });
    return {};
  }

  private async open(
    manager: EntityManager,
    { email, name = nameOf(email), team_id, role = 'member', send_mail = false }: WelcomeUser,
    first: FirstPassword | undefined,
    context: CallContext,
  ): Promise<WelcomedUser & { userId: string }> {
    // The team before the user, as whoever adds members locks them.
    const team = team_id === undefined ? undefined : await this.changes.lockForGrowth(manager, team_id, context.caller);
    const [userId = ''] = await this.registry.findOrCreate(manager, [{ email, name }]);
    const membership = { teamId: team_id ?? '', userId };
    if (team && !(await manager.existsBy(MembershipEntity, membership))) {
      await this.members.enrolWithin(manager, { team_id: team.id, members: [{ email, name, role }] }, context);
    }
    if (first && !(await standingOf(manager, userId)).has_password) {
      await this.setFirst(manager, userId, first, context);
      if (team) await this.changes.acceptInvitation(manager, team, userId, context);
    }
    const isInvited =
      team !== undefined && (await manager.existsBy(MembershipEntity, { ...membership, status: 'invited' }));
    const link = await this.links.issue(manager, {
      userId,
      email,
      isProof: true,
      ...(isInvited && { teamId: team.id }),
    });
    if (send_mail) {
      const letter = isInvited
        ? { kind: 'invitation' as const, teamId: team.id, data: { team_name: team.name } }
        : { kind: 'reset' as const };
      await this.mail.add(manager, { ...letter, address: email, linkId: link.id });
    }
    this.logger.log({ message: 'The operator made a one-time link', user_id: userId, request_id: context.requestId });
    return { userId, url: link.url, expires_at: link.expires_at, ...(await standingOf(manager, userId)) };
  }

  private async firstPassword(password: string, name: string | undefined): Promise<FirstPassword> {
    refuseCommon(password, 'password');
    return { hash: await this.hashes.hash(password), name };
  }

  /** With the end of the links that were good for a first password. */
  private async setFirst(
    manager: EntityManager,
    userId: string,
    { hash, name }: FirstPassword,
    context: CallContext,
  ): Promise<void> {
    await this.links.retire(manager, userId, null);
    const named = name === undefined ? {} : { name };
    await manager.update(UserEntity, { id: userId }, { ...named, verifiedAt: () => 'now()', confinedToTeamId: null });
    await this.passwords.store(manager, userId, hash);
    this.logger.log({ message: 'The operator set a first password', user_id: userId, request_id: context.requestId });
  }
}

function requireOperator({ caller }: CallContext): UserCaller {
  const user = requireUser(caller);
  requirePlatformAdmin(user);
  return user;
}

async function standingOf(manager: EntityManager, userId: string): Promise<Standing> {
  const [standing] = await manager.query<Standing[]>(standingQuery, [userId]);
  return standing ?? { has_password: false, has_second_factor: false };
}

/** Of a person who is named by the address alone. */
const nameOf = (email: string): string => (email.split('@', 1)[0] ?? email).slice(0, 100);
