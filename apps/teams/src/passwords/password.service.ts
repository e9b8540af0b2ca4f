import { type CallContext, type Nothing } from '@atoll/contracts';
import { credentialsChanged, type ChangePassword } from '@atoll/contracts/teams';
import { Statements, Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { requireLiveCredential } from '../api-keys/live-credential.js';
import { isStillPassword } from '../sessions/still-password.js';
import { MailBox } from '../mail/mail-box.js';
import { LinkTokens } from '../tokens/link-tokens.js';
import { LogInTries } from '../tries/log-in-tries.js';
import { SessionsService, type Outlasting } from '../sessions/session.service.js';
import { lockUser } from '../users/lock-user.js';
import { requireOwnUser } from '../users/whole-user.js';
import { refuseCommon } from './common-passwords.js';
import { PasswordHashes } from './password-hashes.service.js';

@Injectable()
export class PasswordsService {
  private readonly logger = new Logger('Sessions');

  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly hashes: PasswordHashes,
    private readonly sessions: SessionsService,
    private readonly tries: LogInTries,
    private readonly links: LinkTokens,
    private readonly mail: MailBox,
    private readonly rpc: Rpc,
  ) {}

  /** Ends every other session and the links for the password: whoever knew the old one may have them. */
  async change({ current, new: chosen }: ChangePassword, context: CallContext): Promise<Nothing> {
    refuseCommon(chosen, 'new');
    const caller = requireOwnUser(context.caller, 'change the password of its user');
    const { userId, credential } = caller;
    const [row] = await this.statements.query<{ hash: string }>('SELECT hash FROM password WHERE user_id = $1', [
      userId,
    ]);
    if (!row) throw new AppError('conflict', 'You have no password yet. Set the first one with a one-time link.');
    const isRight = () => this.hashes.matches(current, row.hash);
    if (!(await this.tries.check({ account: userId, from: 'logged in' }, isRight))) throw isWrong();
    const hash = await this.hashes.hash(chosen);
    await this.transactions.run(async (manager) => {
      await requireLiveCredential(manager, caller);
      // The user before the password, as whoever uses a link locks them.
      await lockUser(manager, userId);
      if (!(await isStillPassword(manager, userId, row.hash))) throw isWrong();
      await this.links.retire(manager, userId, null);
      await this.store(manager, userId, hash, { exceptId: credential.kind === 'session' ? credential.id : null });
    });
    this.logger.log({ message: 'A password was changed', user_id: userId, request_id: context.requestId });
    this.rpc.publish(credentialsChanged, { user_id: userId });
    return {};
  }

  /**
   * Within a transaction: the hash in place of the one before, and the end of every session and network but those of
   * `kept`.
   */
  async store(manager: EntityManager, userId: string, hash: string, kept: Outlasting = {}): Promise<void> {
    await manager.query(
      `INSERT INTO password (user_id, hash) VALUES ($1, $2) ON CONFLICT (user_id) DO UPDATE SET hash = excluded.hash, changed_at = now()`,
      [userId, hash],
    );
    await this.sessions.endOthers(manager, userId, kept);
    await this.mail.notify(manager, userId, 'password_changed');
  }
}

function isWrong(): AppError {
  return new AppError('forbidden', 'The current password is wrong.');
}
