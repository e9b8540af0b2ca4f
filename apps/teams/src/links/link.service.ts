import {
  credentialsChanged,
  notFound,
  requirePlatformAdmin,
  requireUser,
  type CallContext,
  type CreateLink,
  type OneTimeLink,
  type UsedLink,
  type UseLink,
} from '@atoll/contracts';
import { newId, Statements, Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { requireLiveCredential } from '../api-keys/live-credential.js';
import { refuseCommon } from '../passwords/common-passwords.js';
import { PasswordHashes } from '../passwords/password-hashes.service.js';
import { PasswordsService } from '../passwords/password.service.js';
import { DerivedTokens } from '../sessions/derived-token.js';
import { requireGateway } from '../sessions/require-gateway.js';
import { TeamsSettings } from '../teams-settings.js';
import { UserEntity } from '../users/user.entity.js';

const lifeHours = 24;

/** A link that can be used: not yet, in time, and by a user who still has its address. */
const isGood = 'l.used_at IS NULL AND l.expires_at > now() AND u.id = l.user_id AND u.email = l.email';

/** One-time links, by which a user sets a password without another proof. */
@Injectable()
export class LinksService {
  private readonly logger = new Logger('Sessions');
  private readonly tokens: DerivedTokens;

  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly hashes: PasswordHashes,
    private readonly passwords: PasswordsService,
    private readonly settings: TeamsSettings,
    private readonly rpc: Rpc,
  ) {
    this.tokens = new DerivedTokens(settings.keyPepper, 'one-time link');
  }

  /** By the operator, for a user who cannot log in. */
  async create({ email }: CreateLink, context: CallContext): Promise<OneTimeLink> {
    const caller = requireUser(context.caller);
    requirePlatformAdmin(caller);
    return this.transactions.run(async (manager) => {
      await requireLiveCredential(manager, caller);
      const user = await manager.findOneBy(UserEntity, { email });
      if (!user) throw notFound('user');
      this.logger.log({ message: 'The operator made a one-time link', user_id: user.id, request_id: context.requestId });
      return this.issue(manager, user);
    });
  }

  /** Within a transaction: a new link in place of those before. */
  async issue(manager: EntityManager, { id: userId, email }: Pick<UserEntity, 'id' | 'email'>): Promise<OneTimeLink> {
    await this.retire(manager, userId);
    const id = newId();
    const [row] = await manager.query<{ expires_at: Date }[]>(
      `INSERT INTO one_time_link (id, user_id, email, expires_at) VALUES ($1, $2, $3, now() + interval '${lifeHours} hours') RETURNING expires_at`,
      [id, userId, email],
    );
    if (!row) throw new Error('The link was not stored.');
    return { url: `${this.settings.publicUrl}/link#${this.tokens.make(id)}`, expires_at: row.expires_at.toISOString() };
  }

  /** Sets the password of the link's user. Of two who use it at once, one is refused. */
  async use({ token, password, name }: UseLink, context: CallContext): Promise<UsedLink> {
    requireGateway(context);
    refuseCommon(password, 'password');
    const { id } = this.tokens.read(token) ?? {};
    const query = `SELECT FROM one_time_link l, "user" u WHERE l.id = $1 AND ${isGood}`;
    const found = id === undefined ? [] : await this.statements.query('links.find', query, [id]);
    if (found.length === 0) throw notGood();
    const hash = await this.hashes.hash(password);
    const user = await this.transactions.run(async (manager) => {
      const [used] = await manager.query<{ id: string; email: string; is_new: boolean }[]>(
        `WITH used AS (UPDATE one_time_link l SET used_at = now() FROM "user" u WHERE l.id = $1 AND ${isGood} RETURNING u.id, u.email)
         SELECT id, email, NOT EXISTS (SELECT FROM password p WHERE p.user_id = used.id) AS is_new FROM used`,
        [id],
      );
      if (!used) throw notGood();
      await this.retire(manager, used.id);
      if (name !== undefined && used.is_new) await manager.update(UserEntity, { id: used.id }, { name });
      await this.passwords.store(manager, used.id, hash, null);
      return used;
    });
    this.logger.log({ message: 'A password was set by a one-time link', user_id: user.id, request_id: context.requestId });
    this.rpc.publish(credentialsChanged, { user_id: user.id });
    return { email: user.email };
  }

  /** No link of the user that was not used yet is good any more. */
  private async retire(manager: EntityManager, userId: string): Promise<void> {
    await manager.query('UPDATE one_time_link SET used_at = now() WHERE user_id = $1 AND used_at IS NULL', [userId]);
  }
}

function notGood(): AppError {
  return new AppError('unauthenticated', 'The link cannot be used: it was used before, has expired, or was replaced. Ask for another.');
}
