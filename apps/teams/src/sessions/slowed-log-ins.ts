import type { CallContext } from '@atoll/contracts';
import { Transactions } from '@atoll/database';
import { Injectable, Logger } from '@nestjs/common';
import { MailBox } from '../mail/mail-box.js';
import { LogInTries, type TriedAccount } from '../tries/log-in-tries.js';
import { TokenBuckets } from '../tries/token-buckets.js';

const onceAnHour = { refillMs: 3_600_000, capacityMs: 3_600_000 };

/** Whose log-in is tried, null for nobody's, and from where. */
interface Tried {
  readonly userId: string | null;
  readonly address?: string;
  readonly device?: string;
}

/**
 * Limits log-in tries. If none is left, it is logged, and the user gets a mail at most once an hour. The executed code
 * is the same for unknown addresses.
 */
@Injectable()
export class SlowedLogIns {
  private readonly logger = new Logger('Sessions');

  constructor(
    private readonly tries: LogInTries,
    private readonly buckets: TokenBuckets,
    private readonly transactions: Transactions,
    private readonly mail: MailBox,
  ) {}

  /** As `LogInTries.check`. */
  check(by: TriedAccount, tried: Tried, context: CallContext, isRight: () => Promise<boolean>): Promise<boolean> {
    return this.tries.check(by, isRight, () => this.note(by.account, tried, context));
  }

  private async note(account: string, { userId, ...where }: Tried, { requestId }: CallContext): Promise<void> {
    this.logger.warn({
      message: 'Too many log-ins failed; further ones are slowed',
      user_id: userId,
      ...where,
      request_id: requestId,
    });
    if (!this.mail.isOpen || !(await this.buckets.take([account, 'told'], onceAnHour))) return;
    await this.transactions.run((manager) => this.mail.notify(manager, userId, 'log_ins_slowed', where.address));
  }
}
