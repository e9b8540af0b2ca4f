import { createHmac, hkdfSync } from 'node:crypto';
import { credentialsChanged, type CallContext, type LogInFrom, type OpenedSession } from '@atoll/contracts';
import { Statements } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import { PasswordHashes } from '../passwords/password-hashes.service.js';
import { TeamsSettings } from '../teams-settings.js';
import { requireGateway } from './require-gateway.js';
import { SessionsService } from './session.service.js';

/** One row whether the address is known or not. */
const accountQuery = `
  SELECT u.id AS user_id, p.hash, EXISTS (SELECT FROM log_in_network n WHERE n.user_id = u.id AND n.network = $2) AS is_known_network
  FROM (SELECT $1::text AS email) asked
  LEFT JOIN "user" u ON u.email = asked.email LEFT JOIN password p ON p.user_id = u.id`;

/** GCRA: takes one try of the bucket `$1` that refills one in `$2` ms, and holds what fits into `$3` ms. No row: none is left. */
const takeQuery = `
  INSERT INTO log_in_bucket AS b (id, full_at) VALUES ($1, clock_timestamp() + $2 * interval '1 ms')
  ON CONFLICT (id) DO UPDATE SET full_at = greatest(b.full_at, clock_timestamp()) + $2 * interval '1 ms'
  WHERE b.full_at <= clock_timestamp() + ($3 - $2) * interval '1 ms' RETURNING full_at`;

const giveBackQuery = `UPDATE log_in_bucket SET full_at = full_at - $2 * interval '1 ms' WHERE id = $1`;

interface Account {
  user_id: string | null;
  hash: string | null;
  is_known_network: boolean;
}

/** Log-in by password. What is executed, and how long it takes, does not depend on whether the address is known. */
@Injectable()
export class LogInService {
  private readonly logger = new Logger('Sessions');
  private readonly bucketKey: Buffer;

  constructor(
    private readonly statements: Statements,
    private readonly hashes: PasswordHashes,
    private readonly sessions: SessionsService,
    private readonly settings: TeamsSettings,
    private readonly rpc: Rpc,
  ) {
    this.bucketKey = Buffer.from(hkdfSync('sha256', settings.keyPepper, '', 'atoll log-in buckets', 32));
  }

  async logIn({ email, password, ...origin }: LogInFrom, context: CallContext): Promise<OpenedSession> {
    requireGateway(context);
    const [account] = await this.statements.query<Account>('logIn.account', accountQuery, [email, origin.network]);
    if (!account) throw new Error('The account query answered no row.');
    // A network from which the user has logged in counts by itself: whoever tries from elsewhere cannot shut its users out.
    const bucket = this.bucketOf(email, account.is_known_network ? origin.network : '');
    await this.take(bucket);
    const isRight = await this.hashes.matches(password, account.hash);
    if (!isRight || account.user_id === null) {
      const { address, device } = origin;
      this.logger.warn({ message: 'A log-in failed', user_id: account.user_id, address, device, request_id: context.requestId });
      throw new AppError('unauthenticated', 'The e-mail address or the password is wrong.');
    }
    await this.statements.query('logIn.giveBack', giveBackQuery, [bucket, this.tries().refillMs]);
    const opened = await this.sessions.open(account.user_id, origin, context);
    this.rpc.publish(credentialsChanged, { user_id: account.user_id });
    return opened;
  }

  /** A try at the password of a user who is logged in: from the same bucket as those of known networks. Returns what gives it back. */
  async tryAs(userId: string): Promise<() => Promise<unknown>> {
    const bucket = this.bucketOf(userId, 'logged in');
    await this.take(bucket);
    return () => this.statements.query('logIn.giveBack', giveBackQuery, [bucket, this.tries().refillMs]);
  }

  private async take(bucket: Buffer): Promise<void> {
    const { refillMs, capacityMs } = this.tries();
    const taken = await this.statements.query('logIn.take', takeQuery, [bucket, refillMs, capacityMs]);
    if (taken.length > 0) return;
    const retryAfterSeconds = Math.ceil(refillMs / 1000);
    throw new AppError('too_many_requests', 'Too many requests. Please try again later.', { retryAfterSeconds });
  }

  private bucketOf(account: string, network: string): Buffer {
    return createHmac('sha256', this.bucketKey)
      .update(JSON.stringify([account, network]))
      .digest();
  }

  private tries(): { refillMs: number; capacityMs: number } {
    const [count = 10, seconds = 600] = this.settings.logInTries.split('/').map(Number);
    return { refillMs: (seconds * 1000) / count, capacityMs: seconds * 1000 };
  }
}
