import { requireService, type CallContext } from '@atoll/contracts';
import { credentialsChanged, type LogInFrom, type OpenedSession } from '@atoll/contracts/teams';
import { Statements } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Rpc } from '@atoll/rpc';
import { Injectable, Logger } from '@nestjs/common';
import { PasswordHashes } from '../passwords/password-hashes.service.js';
import { SecondFactorsService } from '../second-factors/second-factor.service.js';
import { SessionsService } from '../sessions/session.service.js';
import { SlowedLogIns } from '../sessions/slowed-log-ins.js';

/** One row whether the address is known or not. */
const accountQuery = `
  SELECT u.id AS user_id, p.hash, EXISTS (SELECT FROM log_in_network n WHERE n.user_id = u.id AND n.network = $2) AS is_known_network
  FROM (SELECT $1::text AS email) asked
  LEFT JOIN "user" u ON u.email = asked.email LEFT JOIN password p ON p.user_id = u.id`;

interface Account {
  user_id: string | null;
  hash: string | null;
  is_known_network: boolean;
}

/** Log-in by password. What is executed, and how long it takes, does not depend on whether the address is known. */
@Injectable()
export class LogInService {
  private readonly logger = new Logger('Sessions');

  constructor(
    private readonly statements: Statements,
    private readonly hashes: PasswordHashes,
    private readonly sessions: SessionsService,
    private readonly tries: SlowedLogIns,
    private readonly secondFactors: SecondFactorsService,
    private readonly rpc: Rpc,
  ) {}

  async logIn({ email, password, ...origin }: LogInFrom, context: CallContext): Promise<OpenedSession> {
    requireService(context.caller);
    const [account] = await this.statements.query<Account>(accountQuery, [email, origin.network]);
    if (!account) throw new Error('The account query answered no row.');
    // A network from which the user has logged in counts by itself: whoever tries from elsewhere cannot shut its users
    // out.
    const { address, device } = origin;
    const tried = { userId: account.user_id, address, device };
    const by = { account: email, from: account.is_known_network ? origin.network : '' };
    const compare = () => this.hashes.matches(password, account.hash);
    const isRight = await this.tries.check(by, tried, context, compare);
    if (!isRight || account.user_id === null || account.hash === null) {
      this.logger.warn({
        message: 'A log-in failed',
        user_id: account.user_id,
        address,
        device,
        request_id: context.requestId,
      });
      throw new AppError('unauthenticated', 'The e-mail address or the password is wrong.');
    }
    await this.secondFactors.requireNone(account.user_id, account.hash);
    const opened = await this.sessions.open(account.user_id, origin, context, { hash: account.hash });
    this.rpc.publish(credentialsChanged, { user_id: account.user_id });
    return opened;
  }
}
