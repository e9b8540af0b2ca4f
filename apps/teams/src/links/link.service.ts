import {
  notFound,
  requirePlatformAdmin,
  requireService,
  requireUser,
  type CallContext,
  type Nothing,
} from '@atoll/contracts';
import {
  credentialsChanged,
  type CreateLink,
  type LinkToken,
  type OneTimeLink,
  type ResetPassword,
  type UsedLink,
  type UseLinkFrom,
} from '@atoll/contracts/teams';
import { Statements, Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { requireLinkCredential } from '../api-keys/live-credential.js';
import { TeamChanges } from '../changes/team-changes.js';
import { MailBox } from '../mail/mail-box.js';
import { refuseCommon } from '../passwords/common-passwords.js';
import { PasswordHashes } from '../passwords/password-hashes.service.js';
import { isEmptyAccount } from '../model/empty-account.js';
import { removeFactors } from '../model/factors.js';
import { confinement } from '../sessions/session-query.js';
import { isStillPassword } from '../sessions/still-password.js';
import { PasswordsService } from '../passwords/password.service.js';
import { SlowedLogIns } from '../sessions/slowed-log-ins.js';
import { LogInTries } from '../tries/log-in-tries.js';
import { UserEntity } from '../model/user.entity.js';
import { LinkTokens } from '../tokens/link-tokens.js';
import { lockUser } from '../users/lock-user.js';
import { AccountTakeover } from './account-takeover.js';

/**
 * A link that can be used: not yet, in time, by a user who still has its address and, of an invitation, is still
 * invited.
 */
const isGood = `l.used_at IS NULL AND l.expires_at > now() AND u.id = l.user_id AND u.email = l.email AND (l.team_id IS NULL OR EXISTS (
  SELECT FROM membership i WHERE i.team_id = l.team_id AND i.user_id = u.id AND i.status = 'invited'))`;

/** The good link `$1` and its user. */
const linkQuery = `
  SELECT u.id AS user_id, u.email, l.team_id, l.is_proof, l.removes_factors, l.issued_by_owner, p.hash, t.id IS NOT NULL AS is_team_there,
    ${confinement} IS NOT NULL AS is_confined, ${isEmptyAccount} AS is_empty
  FROM one_time_link l JOIN "user" u ON ${isGood}
  LEFT JOIN team t ON t.id = l.team_id AND t.deleted_at IS NULL LEFT JOIN password p ON p.user_id = u.id
  WHERE l.id = $1`;

const consumeQuery = `
  WITH used AS (UPDATE one_time_link l SET used_at = now() FROM "user" u WHERE l.id = $1 AND ${isGood} RETURNING l.id) SELECT id FROM used`;

interface FoundLink {
  user_id: string;
  email: string;
  /** Of an invitation. */
  team_id: string | null;
  is_proof: boolean;
  removes_factors: boolean;
  issued_by_owner: boolean;
  /** An account whose password was set with a link that verifies nothing, perhaps not by the owner of the address. */
  is_confined: boolean;
  hash: string | null;
  is_team_there: boolean;
  is_empty: boolean;
}

/** One-time links: a first password, one in place of a lost one, and invitations. */
@Injectable()
export class LinksService {
  private readonly logger = new Logger('Sessions');

  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly changes: TeamChanges,
    private readonly hashes: PasswordHashes,
    private readonly passwords: PasswordsService,
    private readonly tries: LogInTries,
    private readonly slowed: SlowedLogIns,
    private readonly links: LinkTokens,
    private readonly takeover: AccountTakeover,
    private readonly mail: MailBox,
    private readonly rpc: Rpc,
  ) {}

  /** By the operator, for a user who cannot log in. */
  async create(
    { email, remove_second_factors: removesFactors = false }: CreateLink,
    context: CallContext,
  ): Promise<OneTimeLink> {
    const caller = requireUser(context.caller);
    requirePlatformAdmin(caller);
    return this.transactions.run(async (manager) => {
      await requireLinkCredential(manager, caller, { email, removesFactors });
      const user = await manager.findOne(UserEntity, { where: { email }, lock: { mode: 'for_no_key_update' } });
      if (!user) throw notFound('user');
      this.logger.log({
        message: 'The operator made a one-time link',
        user_id: user.id,
        request_id: context.requestId,
      });
      const { url, expires_at } = await this.links.issue(manager, {
        userId: user.id,
        email,
        isProof: true,
        removesFactors,
      });
      return { url, expires_at };
    });
  }

  /**
   * Requests a mail with a link. The executed code does not depend on whether the user exists: the mail sender finds
   * that out.
   */
  async reset({ email }: ResetPassword, context: CallContext): Promise<Nothing> {
    requireService(context.caller);
    if (!this.mail.isOpen || !(await this.tries.take({ account: email, from: 'reset' }))) return {};
    await this.transactions.run((manager) => this.mail.add(manager, { kind: 'reset', address: email }));
    return {};
  }

  /**
   * Whether the link can be used, by the statement with which its use begins: nothing is told that a use does not tell.
   * Throws as `use`.
   */
  async check({ token }: LinkToken, context: CallContext): Promise<Nothing> {
    requireService(context.caller);
    await this.find(token);
    return {};
  }

  async use({ token, ...chosen }: UseLinkFrom, context: CallContext): Promise<UsedLink> {
    requireService(context.caller);
    const { id, link } = await this.find(token);
    if (link.team_id !== null && link.hash !== null && !isTakenOver(link)) await this.join(id, link, chosen, context);
    else await this.setPassword(id, link, chosen, context);
    this.rpc.publish(credentialsChanged, { user_id: link.user_id });
    return { email: link.email };
  }

  private async find(token: string): Promise<{ id: string; link: FoundLink }> {
    const id = this.links.read(token);
    const [link] = id === undefined ? [] : await this.statements.query<FoundLink>(linkQuery, [id]);
    if (id === undefined || !link || (link.team_id !== null && !link.is_team_there)) throw notGood();
    return { id, link };
  }

  /**
   * A user who already has a password accepts an invitation with that password; only the membership changes. Whoever
   * was shown the link may try passwords: those tries count by themselves, for all invitations of the user together,
   * since whoever creates teams makes as many invitations as they like.
   */
  private async join(
    id: string,
    { user_id, team_id, hash, is_proof }: FoundLink,
    { password, network }: Omit<UseLinkFrom, 'token'>,
    context: CallContext,
  ): Promise<void> {
    const where = network === undefined ? {} : { address: network };
    const tried = { userId: user_id, ...where };
    const by = { account: user_id, from: 'invitation' };
    const isRight = await this.slowed.check(by, tried, context, () => this.hashes.matches(password, hash));
    if (hash === null || !isRight) {
      this.logger.warn({
        message: 'An invitation was tried with a wrong password',
        user_id,
        team_id,
        ...where,
        request_id: context.requestId,
      });
      throw isAnotherPassword();
    }
    await this.transactions.run(async (manager) => {
      const team = team_id === null ? undefined : await this.changes.lock(manager, team_id);
      // The user before the password, as whoever sets one locks them.
      await lockUser(manager, user_id);
      if (!(await isStillPassword(manager, user_id, hash))) throw isAnotherPassword();
      await this.consume(manager, id);
      if (team) await this.changes.acceptInvitation(manager, team, user_id, context);
      if (is_proof)
        await manager.update(UserEntity, { id: user_id }, { verifiedAt: () => 'now()', confinedToTeamId: null });
    });
    this.logger.log({ message: 'An invitation was accepted', user_id, team_id, request_id: context.requestId });
  }

  private async setPassword(id: string, link: FoundLink, chosen: Omit<UseLinkFrom, 'token'>, context: CallContext) {
    const { user_id, team_id, is_proof, is_empty } = link;
    refuseCommon(chosen.password, 'password');
    requireSettable(link);
    const hash = await this.hashes.hash(chosen.password);
    await this.transactions.run(async (manager) => {
      const team = team_id === null ? undefined : await this.changes.lock(manager, team_id);
      if (isTakenOver(link)) await this.takeover.lockTeams(manager, user_id);
      await lockUser(manager, user_id);
      // While the password was hashed, its user may have set one by another link, or have joined a team.
      const [now] = await manager.query<FoundLink[]>(linkQuery, [id]);
      if (!now) throw notGood();
      requireSettable(now);
      await this.consume(manager, id);
      await this.links.retire(manager, user_id, null);
      if (chosen.name !== undefined && is_empty)
        await manager.update(UserEntity, { id: user_id }, { name: chosen.name });
      if (isTakenOver(now)) await this.takeover.run(manager, user_id, context);
      else if (now.removes_factors) {
        await removeFactors(manager, user_id);
        this.logger.log({
          message: 'Second factors were removed by a one-time link',
          user_id,
          request_id: context.requestId,
        });
      }
      // A link that somebody else was shown proves nothing: what it makes reaches no further than the team of whoever
      // saw it.
      const standing = is_proof
        ? { verifiedAt: () => 'now()', confinedToTeamId: null }
        : { confinedToTeamId: team_id, confinedByOwner: now.issued_by_owner };
      await manager.update(UserEntity, { id: user_id }, standing);
      if (team) await this.changes.acceptInvitation(manager, team, user_id, context);
      // Whoever was shown the link of another has not shown to be that user.
      await this.passwords.store(manager, user_id, hash, is_proof ? { network: chosen.network } : {});
    });
    this.logger.log({ message: 'A password was set by a one-time link', user_id, request_id: context.requestId });
    if (team_id)
      this.logger.log({ message: 'An invitation was accepted', user_id, team_id, request_id: context.requestId });
  }

  /** Of two who use a link at once, one is refused. */
  private async consume(manager: EntityManager, id: string): Promise<void> {
    if ((await manager.query<object[]>(consumeQuery, [id])).length === 0) throw notGood();
  }
}

/** Whether the owner of the address takes over an account that somebody else may have created. */
function isTakenOver({ is_proof, is_confined }: FoundLink): boolean {
  return is_proof && is_confined;
}

/** Throws `forbidden` if the link of an invitation would set the password of an existing account. */
function requireSettable(link: FoundLink): void {
  const { team_id, hash, is_proof, is_empty } = link;
  const isTaken = is_proof ? team_id !== null && hash !== null && !isTakenOver(link) : !is_empty;
  if (isTaken)
    throw new AppError('forbidden', 'This address has an account already. Log in, and accept the invitation there.');
}

function isAnotherPassword(): AppError {
  return new AppError('unauthenticated', 'This address has an account already: the password must be the one it has.');
}

function notGood(): AppError {
  return new AppError(
    'unauthenticated',
    'The link cannot be used: it was already used, has expired or was replaced. Request another.',
  );
}
