import { createHmac, randomUUID } from 'node:crypto';
import { derivedKey, DerivedTokens } from '@atoll/api-keys';
import { emailAddress, requireService, type CallContext } from '@atoll/contracts';
import {
  credentialsChanged,
  type OpenedSession,
  type SsoAnswer,
  type SsoFlow,
  type SsoProviderPath,
  type SsoProviders,
} from '@atoll/contracts/teams';
import { newId, takeTurn, Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { isEmptyAccount } from '../model/empty-account.js';
import { AccountTakeover } from '../links/account-takeover.js';
import { MailBox } from '../mail/mail-box.js';
import { confinement } from '../sessions/session-query.js';
import { SessionsService } from '../sessions/session.service.js';
import { TeamsSettings } from '../teams-settings.js';
import { lockUser } from '../users/lock-user.js';
import type { SsoProviderSettings } from './sso-file.js';
import { SsoMemberships } from './sso-memberships.js';
import { SsoProviderClients, type SsoClaims, type SsoSecrets } from './sso-providers.js';
import { UserIdentityEntity } from '../model/user-identity.entity.js';

const flowMinutes = 10;

/** Throws `forbidden` unless the provider calls the address verified and the API accepts it. */
function addressIn({ email, isEmailVerified }: SsoClaims, { name }: SsoProviderSettings): string {
  const refuse = (why: string) => new AppError('forbidden', `${name} sent ${why}. Ask your administrator.`);
  if (!isEmailVerified || !email) throw refuse('no verified e-mail address for you');
  const accepted = emailAddress(email);
  if (accepted === undefined) throw refuse('an e-mail address for you that is not accepted here');
  return accepted;
}

/** Log-in by another's account: a user is who has the provider's subject. */
@Injectable()
export class SsoService {
  private readonly logger = new Logger('Single sign-on');
  private readonly tokens: DerivedTokens;
  private readonly key: Buffer;

  constructor(
    private readonly transactions: Transactions,
    private readonly providers: SsoProviderClients,
    private readonly memberships: SsoMemberships,
    private readonly takeover: AccountTakeover,
    private readonly sessions: SessionsService,
    private readonly rpc: Rpc,
    private readonly mail: MailBox,
    { keyPepper }: TeamsSettings,
  ) {
    this.tokens = new DerivedTokens(keyPepper, 'single sign-on flow');
    this.key = derivedKey(keyPepper, 'single sign-on secrets');
  }

  list(context: CallContext): SsoProviders {
    requireService(context.caller);
    return { sends_mail: this.mail.isOpen, data: this.providers.all.map(({ id, name }) => ({ id, name })) };
  }

  async begin({ provider: providerId }: SsoProviderPath, context: CallContext): Promise<SsoFlow> {
    requireService(context.caller);
    const provider = this.providers.find(providerId);
    const id = newId();
    const url = await this.providers.urlFor(provider, this.secretsOf(id));
    await this.transactions.run((manager) =>
      manager.query(
        `INSERT INTO sso_flow (id, provider, expires_at) VALUES ($1, $2, now() + interval '${flowMinutes} minutes')`,
        [id, provider.id],
      ),
    );
    return { url, flow_token: this.tokens.make(id), expires_in: flowMinutes * 60 };
  }

  async finish(
    { provider: providerId, flow_token, address, network, device, ...answer }: SsoAnswer,
    context: CallContext,
  ): Promise<OpenedSession> {
    requireService(context.caller);
    const provider = this.providers.find(providerId);
    const secrets = await this.take(flow_token, provider);
    if (answer.error !== undefined)
      throw new AppError('unauthenticated', `${provider.name} did not log you in. Log in again.`);
    const sent = Object.fromEntries(
      Object.entries(answer).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
    const claims = await this.providers.claims(provider, sent, secrets);
    const userId = await this.transactions.run((manager) => this.userOf(manager, provider, claims, context));
    await this.memberships.apply(userId, provider, claims.values, context);
    this.rpc.publish(credentialsChanged, { user_id: userId });
    this.logger.log({
      message: 'Logged in at a provider',
      provider: provider.id,
      user_id: userId,
      request_id: context.requestId,
    });
    return this.sessions.open(userId, { address, network, device }, context, {
      hasSecondFactor: claims.hasSecondFactor,
    });
  }

  /**
   * By issuer and subject; by the address only where the provider calls it verified, and the operator trusts it with
   * that or the account has nothing yet.
   */
  private async userOf(
    manager: EntityManager,
    provider: SsoProviderSettings,
    claims: SsoClaims,
    context: CallContext,
  ): Promise<string> {
    const identity = { issuer: provider.issuer, subject: claims.subject };
    // A replica of an earlier release takes another lock: beside one, the primary key refuses the second identity.
    await takeTurn(manager, `identity ${JSON.stringify(identity)}`);
    const known = await manager.findOneBy(UserIdentityEntity, identity);
    if (known) return known.userId;
    const email = addressIn(claims, provider);
    const id = await this.accountOf(manager, provider, email, claims.name);
    await this.takeOver(manager, id, context);
    await manager.query(
      'UPDATE "user" SET verified_at = coalesce(verified_at, now()), confined_to_team_id = NULL WHERE id = $1',
      [id],
    );
    await manager.insert(UserIdentityEntity, { ...identity, userId: id });
    return id;
  }

  private async takeOver(manager: EntityManager, userId: string, context: CallContext): Promise<void> {
    const [user] = await manager.query<{ is_confined: boolean }[]>(
      `SELECT ${confinement} IS NOT NULL AS is_confined FROM "user" u WHERE id = $1 FOR NO KEY UPDATE`,
      [userId],
    );
    if (user?.is_confined) await this.takeover.run(manager, userId, context);
  }

  /**
   * Tries to create the account first, and reads it if that fails: a concurrently created account counts as existing.
   */
  private async accountOf(
    manager: EntityManager,
    provider: SsoProviderSettings,
    email: string,
    name = email.slice(0, 100),
  ): Promise<string> {
    const [made] = await manager.query<{ id: string }[]>(
      'INSERT INTO "user" (id, email, name) VALUES ($1, $2, $3) ON CONFLICT (email) DO NOTHING RETURNING id',
      [randomUUID(), email, name],
    );
    if (made) return made.id;
    const [existing] = await manager.query<{ id: string; platform_admin: boolean }[]>(
      'SELECT id, platform_admin FROM "user" WHERE email = $1',
      [email],
    );
    // An empty account may be removed at any moment until it is locked.
    if (!existing || !(await this.lock(manager, existing.id))) return this.accountOf(manager, provider, email, name);
    const isNew = await this.nameEmpty(manager, existing.id, name);
    if (isNew || (provider.trust_email && !existing.platform_admin)) return existing.id;
    throw new AppError('forbidden', 'There is an account with your address already. Log in with its password.');
  }

  /** Whether the user is still there, and locked now with its teams, as whoever sets its password locks it. */
  private async lock(manager: EntityManager, userId: string): Promise<boolean> {
    await this.takeover.lockTeams(manager, userId);
    return lockUser(manager, userId);
  }

  /**
   * Of a locked user: whether nobody has anything on the account, which somebody has only invited: it counts as new,
   * with the name that a new one has. Otherwise whoever invites an address would shut its owner out.
   */
  private async nameEmpty(manager: EntityManager, userId: string, name: string): Promise<boolean> {
    const named = await manager.query<unknown[]>(
      `WITH named AS (UPDATE "user" u SET name = $2 WHERE u.id = $1 AND ${isEmptyAccount} RETURNING u.id) SELECT id FROM named`,
      [userId, name],
    );
    return named.length > 0;
  }

  /** Uses the flow up: an answer counts once, in the browser that asked, and for the provider it was asked of. */
  private async take(token: string, { id: providerId, name }: SsoProviderSettings): Promise<SsoSecrets> {
    const { id } = this.tokens.read(token) ?? {};
    const taken =
      id === undefined
        ? []
        : await this.transactions.run((manager) =>
            manager.query<unknown[]>(
              `WITH taken AS (DELETE FROM sso_flow WHERE id = $1 AND provider = $2 AND expires_at > now() RETURNING id) SELECT id FROM taken`,
              [id, providerId],
            ),
          );
    if (id !== undefined && taken.length > 0) return this.secretsOf(id);
    throw new AppError(
      'unauthenticated',
      `The log-in at ${name} was not started in this browser, or took longer than ${flowMinutes} minutes. Log in again.`,
    );
  }

  private secretsOf(id: string): SsoSecrets {
    const secret = (what: string): string => createHmac('sha256', this.key).update(`${what} ${id}`).digest('base64url');
    return { state: secret('state'), nonce: secret('nonce'), verifier: secret('verifier') };
  }
}
