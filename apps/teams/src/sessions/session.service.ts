import { createHash } from 'node:crypto';
import { refreshTokensOf, type DerivedTokens } from '@atoll/api-keys';
import {
  networkOf,
  notFound,
  requirePlatformAdmin,
  requireService,
  type CallContext,
  type Nothing,
} from '@atoll/contracts';
import {
  credentialsChanged,
  type EndedSession,
  type OfUser,
  type OpenedSession,
  type RefreshFrom,
  type RefreshToken,
  type SessionCredential,
  type SessionKeys,
  type SessionList,
  type SessionOrigin,
  type SessionPath,
} from '@atoll/contracts/teams';
import { newId, ReservedStatements, Statements, Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { MailBox } from '../mail/mail-box.js';
import { isStillPassword } from './still-password.js';
import { TeamsSettings } from '../teams-settings.js';
import { requireOwnUser } from '../users/whole-user.js';
import { graceSeconds, maxSessions } from './session-policy.js';
import {
  credentialQuery,
  endQuery,
  endSurplusQuery,
  findQuery,
  listQuery,
  openQuery,
  rememberNetworkQuery,
  rotateQuery,
  type SessionRow,
} from './session-query.js';
import { SessionAnswers } from './session-answers.js';
import { SigningKeys } from './signing-keys.service.js';

type EndReason =
  | 'logged_out'
  | 'ended_by_user'
  | 'ended_by_operator'
  | 'password_changed'
  | 'refresh_token_reused'
  | 'too_many';

type Presented = SessionRow & { is_alive: boolean; is_recent: boolean; is_same_attempt: boolean };

/** Which sessions end; `$1` is the reason. */
type EndCondition = 'id = $2' | 'user_id = $2' | 'id = $2 AND user_id = $3';

/**
 * What outlasts a new password: a session with its network, or the network from which the user has just shown to be
 * that user.
 */
export interface Outlasting {
  exceptId?: string | null;
  network?: string | undefined;
}

/** What a refresh token came to. */
type Verdict = { session: SessionRow } | { refused: 'unknown' | 'ended' } | { refused: 'reused'; session: SessionRow };

/** Sessions: a log-in, the refresh tokens that follow from it, and its end. */
@Injectable()
export class SessionsService {
  private readonly logger = new Logger('Sessions');
  private readonly refreshTokens: DerivedTokens;

  constructor(
    private readonly statements: Statements,
    private readonly reserved: ReservedStatements,
    private readonly transactions: Transactions,
    private readonly answers: SessionAnswers,
    private readonly signingKeys: SigningKeys,
    private readonly mail: MailBox,
    private readonly settings: TeamsSettings,
    private readonly rpc: Rpc,
  ) {
    this.refreshTokens = refreshTokensOf(settings.keyPepper);
  }

  /**
   * A new session of a user who has just proven to be that user: with `hash`, by the password of that hash, with
   * `passkeyId`, by that passkey. Throws `unauthenticated` if it was changed or removed meanwhile; who changes or
   * removes it later finds the session.
   */
  async open(
    userId: string,
    { address, device, network }: SessionOrigin,
    { requestId }: CallContext,
    { hasSecondFactor = false, hash, passkeyId }: { hasSecondFactor?: boolean; hash?: string; passkeyId?: string } = {},
  ): Promise<OpenedSession> {
    const { idleHours, days } = this.limits();
    const id = newId();
    const { session, hasEnded } = await this.transactions.run(async (manager) => {
      if (hash !== undefined && !(await isStillPassword(manager, userId, hash))) {
        throw new AppError('unauthenticated', 'The e-mail address or the password is wrong.');
      }
      const kept =
        passkeyId && (await manager.query<object[]>('SELECT FROM passkey WHERE id = $1 FOR KEY SHARE', [passkeyId]));
      if (kept?.length === 0) throw new AppError('unauthenticated', 'The passkey is not valid here.');
      const [opened] = await manager.query<SessionRow[]>(openQuery, [
        id,
        userId,
        address,
        device,
        idleHours,
        days,
        hasSecondFactor,
      ]);
      if (!opened) throw new Error('The session was not stored.');
      const ended = await manager.query<object[]>(endSurplusQuery, [userId, maxSessions]);
      const [known] = await manager.query<{ is_new_device: boolean }[]>(rememberNetworkQuery, [userId, network]);
      if (known?.is_new_device) await this.mail.notify(manager, userId, 'new_device', address);
      return { session: opened, hasEnded: ended.length > 0 };
    });
    if (hasEnded) this.rpc.publish(credentialsChanged, { user_id: userId });
    this.logger.log({ message: 'Logged in', user_id: userId, session_id: id, address, device, request_id: requestId });
    return this.answers.opened(session, this.refreshTokens.make(id));
  }

  /**
   * The next tokens of a session; the same again for the attempt that had them, until they are used. Ends the session
   * where the token was used by another attempt: one of the two is not its owner.
   */
  async refresh(input: RefreshFrom, context: CallContext): Promise<OpenedSession> {
    requireService(context.caller);
    const verdict = await this.judge(input);
    if (!('refused' in verdict)) {
      const { session } = verdict;
      return this.answers.opened(session, this.refreshTokens.make(session.id, session.generation));
    }
    if (verdict.refused === 'reused') {
      const { id, user_id } = verdict.session;
      this.logger.warn({
        message: 'A refresh token was used twice; the session has ended',
        user_id,
        session_id: id,
        address: input.address,
        device: input.device,
        request_id: context.requestId,
      });
      this.rpc.publish(credentialsChanged, { user_id });
    }
    throw sessionEnded();
  }

  /** Ends the session of the token; nothing where there is none. */
  async logOut({ refresh_token }: RefreshToken, context: CallContext): Promise<EndedSession> {
    requireService(context.caller);
    const token = this.refreshTokens.read(refresh_token);
    const session = token && (await this.endWhere('id = $2', [token.id], 'logged_out', context))[0];
    return { user_id: session?.user_id ?? null };
  }

  keys(context: CallContext): Promise<SessionKeys> {
    requireService(context.caller);
    return this.signingKeys.list();
  }

  async verify({ id }: SessionPath, context: CallContext): Promise<SessionCredential> {
    requireService(context.caller);
    const isFactorRequired = this.settings.operatorSecondFactor === 'required';
    const [found] = await this.reserved.query<SessionCredential>(credentialQuery, [id, isFactorRequired]);
    if (!found) throw sessionEnded();
    return found;
  }

  async list({ caller }: CallContext): Promise<SessionList> {
    const { userId, credential } = requireOwnUser(caller, 'see the sessions of its user');
    const data = await this.statements.query<SessionList['data'][number]>(listQuery, [userId, credential.id]);
    return { data };
  }

  async end({ id }: SessionPath, context: CallContext): Promise<Nothing> {
    const { userId } = requireOwnUser(context.caller, 'end sessions of its user');
    const ended = await this.endWhere('id = $2 AND user_id = $3', [id, userId], 'ended_by_user', context);
    if (ended.length === 0) throw notFound('session');
    return {};
  }

  /** Of the caller, or of another by the operator's hand. */
  async endAll({ user_id }: OfUser, context: CallContext): Promise<Nothing> {
    const { userId } = requireOwnUser(context.caller, 'end sessions of its user');
    if (user_id === undefined || user_id === userId) {
      await this.endWhere('user_id = $2', [userId], 'ended_by_user', context);
      return {};
    }
    requirePlatformAdmin(context.caller);
    const [user] = await this.statements.query('SELECT FROM "user" WHERE id = $1', [user_id]);
    if (!user) throw notFound('user');
    await this.endWhere('user_id = $2', [user_id], 'ended_by_operator', context);
    return {};
  }

  /**
   * Within the transaction that changes the user's password: the end of every session but `exceptId`, and of what is
   * known of the networks of the user but that of this session, or the one from which the user has just shown to be
   * that user. Publish `credentialsChanged` after its commit.
   */
  async endOthers(
    manager: EntityManager,
    userId: string,
    { exceptId = null, network }: Outlasting = {},
  ): Promise<void> {
    const values = ['password_changed' satisfies EndReason, userId, exceptId];
    await manager.query(endQuery('user_id = $2 AND id IS DISTINCT FROM $3::uuid'), values);
    const [kept] = await manager.query<{ address: string }[]>('SELECT address FROM session WHERE id = $1', [exceptId]);
    const known = network ?? (kept && networkOf(kept.address)) ?? null;
    await manager.query('DELETE FROM log_in_network WHERE user_id = $1 AND network IS DISTINCT FROM $2', [
      userId,
      known,
    ]);
    if (network !== undefined) await manager.query(rememberNetworkQuery, [userId, network]);
  }

  /** Within a transaction: as if its user had logged in just now, from the network of the session if that is known. */
  async keepNetwork(manager: EntityManager, id: string): Promise<void> {
    const [session] = await manager.query<{ address: string }[]>('SELECT address FROM session WHERE id = $1', [id]);
    await manager.query(
      `UPDATE log_in_network n SET last_used_at = now() FROM session s WHERE s.id = $1 AND n.user_id = s.user_id AND n.network = $2`,
      [id, networkOf(session?.address ?? '')],
    );
  }

  private async judge({ refresh_token, attempt, address, device }: RefreshFrom): Promise<Verdict> {
    const { id, generation } = this.refreshTokens.read(refresh_token) ?? {};
    if (id === undefined || generation === undefined) return { refused: 'unknown' };
    const digest = attempt === undefined ? null : attemptDigest(refresh_token, attempt);
    return this.transactions.run(async (manager): Promise<Verdict> => {
      const values = [id, generation, address, device, this.limits().idleHours, digest];
      const [rotated] = await manager.query<SessionRow[]>(rotateQuery, values);
      if (rotated) return { session: rotated };
      const [presented] = await manager.query<Presented[]>(findQuery, [id, graceSeconds, digest]);
      if (!presented?.is_alive) return { refused: presented ? 'ended' : 'unknown' };
      const mayAskAgain = presented.is_recent || presented.is_same_attempt;
      if (generation === presented.generation - 1 && mayAskAgain) return { session: presented };
      await manager.query(endQuery('id = $2'), ['refresh_token_reused' satisfies EndReason, id]);
      await this.mail.notify(manager, presented.user_id, 'session_stolen', address);
      return { refused: 'reused', session: presented };
    });
  }

  private async endWhere(
    condition: EndCondition,
    values: unknown[],
    reason: EndReason,
    { requestId }: CallContext,
  ): Promise<{ user_id: string }[]> {
    const ended = await this.transactions.run((manager) =>
      manager.query<{ id: string; user_id: string }[]>(endQuery(condition), [reason, ...values]),
    );
    for (const { id, user_id } of ended) {
      this.logger.log({ message: 'A session has ended', reason, user_id, session_id: id, request_id: requestId });
    }
    for (const user_id of new Set(ended.map((session) => session.user_id)))
      this.rpc.publish(credentialsChanged, { user_id });
    return ended;
  }

  private limits(): { idleHours: number; days: number } {
    return { idleHours: this.settings.sessionIdleHours, days: this.settings.sessionDays };
  }
}

/**
 * The digest includes the token, so that the id counts for this token alone: also where the client keeps the id for its
 * next token, and where a replica of the release before rotates the session and leaves the digest as it was.
 */
function attemptDigest(refreshToken: string, attempt: string): Buffer {
  return createHash('sha256').update(`${refreshToken} ${attempt}`).digest();
}

/** The same words whatever ended it. */
function sessionEnded(): AppError {
  return new AppError('unauthenticated', 'The session has ended. Log in again.');
}
