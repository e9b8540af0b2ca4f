import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { derivedKey, DerivedTokens } from '@atoll/api-keys';
import { notFound, requireFreshLogIn, requireService, type CallContext, type Nothing } from '@atoll/contracts';
import type {
  NewSecondFactor,
  OpenedSession,
  RecoveryCodes,
  SecondFactorCode,
  SecondStepFrom,
} from '@atoll/contracts/teams';
import { Statements, Transactions } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Sealer } from '@atoll/seal';
import { Injectable, Logger } from '@nestjs/common';
import { Secret, TOTP } from 'otpauth';
import type { EntityManager } from 'typeorm';
import { requireFactorCredential } from '../api-keys/live-credential.js';
import { MailBox } from '../mail/mail-box.js';
import { LogInTries } from '../tries/log-in-tries.js';
import { SessionsService } from '../sessions/session.service.js';
import { SlowedLogIns } from '../sessions/slowed-log-ins.js';
import { secondFactorPurpose } from '../model/second-factor.entity.js';
import { TeamsSettings } from '../teams-settings.js';
import { requireOwnUser } from '../users/whole-user.js';

const ticketSeconds = 300;
const minuteMs = 60_000;
/** RFC 6238, 5.2: one step of 30 s before and after, for clocks that differ. */
const window = 1;
const stepSeconds = 30;
const codes = 10;
/** Names the tries of log-ins from networks that are not known. */
const commonTries = 'second factor';
/** Names the tries of a user who is logged in. */
const ownTries = 'second factor, logged in';

/** Which tries a code takes one of, what a wrong one is, and where it comes from. */
interface Attempt {
  readonly tries: string;
  readonly refusal: 'unauthenticated' | 'forbidden';
  readonly where: { readonly address?: string; readonly device?: string };
}

/** A second factor: an authenticator app (TOTP, RFC 6238), and recovery codes for when it is lost. */
@Injectable()
export class SecondFactorsService {
  private readonly logger = new Logger('Sessions');
  private readonly sealer: Sealer;
  private readonly tickets: DerivedTokens;
  private readonly ticketKey: Buffer;
  private readonly codeKey: Buffer;

  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly sessions: SessionsService,
    private readonly tries: LogInTries,
    private readonly slowed: SlowedLogIns,
    private readonly mail: MailBox,
    { sealKeys, keyPepper }: TeamsSettings,
  ) {
    this.sealer = new Sealer(sealKeys);
    this.tickets = new DerivedTokens(keyPepper, 'second factor ticket');
    this.ticketKey = derivedKey(keyPepper, 'second factor ticket of a password');
    this.codeKey = derivedKey(keyPepper, 'recovery codes');
  }

  /**
   * Throws `second_factor_required`, with a ticket for the second step, where the user has a second factor. For who has
   * shown the password of this hash: the ticket ends with it.
   */
  async requireNone(userId: string, hash: string): Promise<void> {
    if (!(await this.has(userId))) return;
    // A ticket names a whole minute: it ends by less than a minute later than is announced, and never earlier.
    const endMinute = Math.ceil((Date.now() + ticketSeconds * 1000) / minuteMs);
    const named = this.tickets.make(userId, endMinute);
    const ticket = `${named}.${this.boundTo(named, hash).toString('base64url')}`;
    throw new AppError(
      'second_factor_required',
      'Send the ticket with a code of your authenticator, or with a recovery code.',
      {
        secondFactor: { ticket, methods: ['totp', 'recovery_code'], expires_in: ticketSeconds },
      },
    );
  }

  async logIn({ ticket, code, ...origin }: SecondStepFrom, context: CallContext): Promise<OpenedSession> {
    requireService(context.caller);
    const { userId, hash } = await this.readTicket(ticket);
    const { address, device } = origin;
    const tries = await this.triesFrom(userId, origin.network);
    await this.use(userId, code, { tries, refusal: 'unauthenticated', where: { address, device } }, context);
    return this.sessions.open(userId, origin, context, { hasSecondFactor: true, hash });
  }

  /**
   * Names the tries of a log-in from this network. A network from which the user has logged in, with this password and
   * this authenticator, has its own: whoever has the password and tries codes from elsewhere cannot use them up. One
   * that is known by less has not, since a password, or the mail with a link for a new one, makes any number of
   * networks known.
   */
  private async triesFrom(userId: string, network: string): Promise<string> {
    const known = `SELECT FROM log_in_network n JOIN second_factor f USING (user_id) JOIN password p USING (user_id)
      WHERE n.user_id = $1 AND n.network = $2 AND n.last_used_at >= f.created_at AND n.last_used_at > p.changed_at`;
    return (await this.statements.query(known, [userId, network])).length > 0
      ? `${commonTries} ${network}`
      : commonTries;
  }

  /** Whose ticket it is, and the hash of the password that was shown for it, which is the user's still. */
  private async readTicket(ticket: string): Promise<{ userId: string; hash: string }> {
    const [named = '', bound = ''] = ticket.split(/\.(?=[^.]*$)/);
    const { id: userId, generation: endMinute = 0 } = this.tickets.read(named) ?? {};
    if (userId !== undefined && endMinute * minuteMs > Date.now()) {
      const asked = 'SELECT hash FROM password WHERE user_id = $1';
      const [row] = await this.statements.query<{ hash: string }>(asked, [userId]);
      const expected = row && this.boundTo(named, row.hash);
      const given = Buffer.from(bound, 'base64url');
      if (row && expected?.length === given.length && timingSafeEqual(expected, given))
        return { userId, hash: row.hash };
    }
    throw new AppError('unauthenticated', 'The ticket has expired. Log in again.');
  }

  private boundTo(named: string, hash: string): Buffer {
    return createHmac('sha256', this.ticketKey).update(`${named} ${hash}`).digest();
  }

  /** A new secret, which counts from its first code on. Replaces one that was not confirmed. */
  async begin({ caller: called }: CallContext): Promise<NewSecondFactor> {
    const caller = requireOwnUser(called, 'add a second factor');
    const secret = new Secret({ size: 20 });
    return this.transactions.run(async (manager) => {
      await requireFactorCredential(manager, caller);
      const sealed = this.sealer.seal(secret.base32, secondFactorPurpose(caller.userId));
      const [row] = await manager.query<{ email: string }[]>(
        `WITH begun AS (
           INSERT INTO second_factor AS f (user_id, sealed) VALUES ($1, $2)
           ON CONFLICT (user_id) DO UPDATE SET sealed = excluded.sealed WHERE NOT f.is_confirmed RETURNING user_id)
         SELECT u.email FROM begun JOIN "user" u ON u.id = begun.user_id`,
        [caller.userId, sealed],
      );
      if (!row) throw new AppError('conflict', 'You have a second factor already. Remove it first.');
      return { secret: secret.base32, uri: totpOf(secret.base32, row.email).toString() };
    });
  }

  async confirm({ code }: SecondFactorCode, context: CallContext): Promise<RecoveryCodes> {
    const caller = requireOwnUser(context.caller, 'add a second factor');
    const { userId } = caller;
    const begun = 'SELECT is_confirmed FROM second_factor WHERE user_id = $1';
    const requireBegun = ([row]: { is_confirmed: boolean }[]) => {
      if (row?.is_confirmed !== false) throw nothingToConfirm(row !== undefined);
    };
    requireBegun(await this.statements.query(begun, [userId]));
    const recovery_codes = Array.from({ length: codes }, newCode);
    const add = async (manager: EntityManager) => {
      await requireFactorCredential(manager, caller);
      requireBegun(await manager.query(`${begun} FOR UPDATE`, [userId]));
      if (!(await this.consumeTotp(manager, userId, code, false))) return false;
      await manager.query('UPDATE second_factor SET is_confirmed = true, created_at = now() WHERE user_id = $1', [
        userId,
      ]);
      await manager.query('DELETE FROM recovery_code WHERE user_id = $1', [userId]);
      await manager.query('INSERT INTO recovery_code (user_id, digest) SELECT $1, unnest($2::bytea[])', [
        userId,
        recovery_codes.map((text) => this.digestOf(text)),
      ]);
      if (caller.credential.kind === 'session') {
        await manager.query('UPDATE session SET has_second_factor = true WHERE id = $1', [caller.credential.id]);
        await this.sessions.keepNetwork(manager, caller.credential.id);
      }
      await this.mail.notify(manager, userId, 'factor_added');
      return true;
    };
    if (!(await this.tries.check({ account: userId, from: ownTries }, () => this.transactions.run(add))))
      throw new AppError('forbidden', 'The code is wrong, or was already used.');
    this.logger.log({ message: 'A second factor was added', user_id: userId, request_id: context.requestId });
    return { recovery_codes };
  }

  async remove({ code }: SecondFactorCode, context: CallContext): Promise<Nothing> {
    const caller = requireOwnUser(context.caller, 'remove a second factor');
    const { userId } = caller;
    if (!(await this.has(userId))) throw notFound('second factor');
    // Before the code, of which too many tries are refused.
    requireFreshLogIn(caller);
    // The factor whose code it is, and not one that is added meanwhile.
    await this.use(userId, code, { tries: ownTries, refusal: 'forbidden', where: {} }, context, async (manager) => {
      await manager.query('DELETE FROM recovery_code WHERE user_id = $1', [userId]);
      await manager.query('DELETE FROM second_factor WHERE user_id = $1', [userId]);
      // After the deletion: by its code a session without this factor may remove it, unless a passkey remains.
      await requireFactorCredential(manager, caller);
      await this.mail.notify(manager, userId, 'factor_removed');
    });
    this.logger.log({ message: 'A second factor was removed', user_id: userId, request_id: context.requestId });
    return {};
  }

  private async has(userId: string): Promise<boolean> {
    const asked = 'SELECT FROM second_factor WHERE user_id = $1 AND is_confirmed';
    return (await this.statements.query(asked, [userId])).length > 0;
  }

  /**
   * Uses a code up, once, and does what follows in the same transaction. Throws `refusal` for one that is wrong,
   * `too_many_requests` after too many of those.
   */
  private async use(
    userId: string,
    code: string,
    { tries: from, refusal, where }: Attempt,
    context: CallContext,
    andThen: (manager: EntityManager) => Promise<void> = () => Promise.resolve(),
  ): Promise<void> {
    const consume = async (manager: EntityManager) => {
      const isUsed =
        (await this.consumeTotp(manager, userId, code, true)) || (await this.consumeRecovery(manager, userId, code));
      if (isUsed) await andThen(manager);
      return isUsed;
    };
    const by = { account: userId, from };
    if (!(await this.slowed.check(by, { userId, ...where }, context, () => this.transactions.run(consume)))) {
      this.logger.warn({
        message: 'A second factor was wrong',
        user_id: userId,
        ...where,
        request_id: context.requestId,
      });
      throw new AppError(refusal, 'The code is wrong, or was already used.');
    }
  }

  private async consumeTotp(
    manager: EntityManager,
    userId: string,
    code: string,
    isConfirmed: boolean,
  ): Promise<boolean> {
    const [factor] = await manager.query<{ sealed: string; last_step: string }[]>(
      'SELECT sealed, last_step FROM second_factor WHERE user_id = $1 AND is_confirmed = $2 FOR UPDATE',
      [userId, isConfirmed],
    );
    if (!factor) return false;
    const totp = totpOf(this.sealer.open(factor.sealed, secondFactorPurpose(userId)).toString(), '');
    const timestamp = Date.now();
    const token = code.replaceAll(' ', '');
    // Of other characters the library throws where they take more bytes than digits do.
    const delta = /^\d{6}$/.test(token) ? totp.validate({ token, timestamp, window }) : null;
    if (delta === null) return false;
    const step = Math.floor(timestamp / 1000 / stepSeconds) + delta;
    if (step <= Number(factor.last_step)) return false;
    await manager.query('UPDATE second_factor SET last_step = $2 WHERE user_id = $1', [userId, step]);
    return true;
  }

  private async consumeRecovery(manager: EntityManager, userId: string, code: string): Promise<boolean> {
    const used = await manager.query<unknown[]>(
      'WITH used AS (DELETE FROM recovery_code WHERE user_id = $1 AND digest = $2 RETURNING digest) SELECT digest FROM used',
      [userId, this.digestOf(code)],
    );
    return used.length > 0;
  }

  private digestOf(code: string): Buffer {
    return createHmac('sha256', this.codeKey).update(code.toLowerCase().replaceAll(/[\s-]/g, '')).digest();
  }
}

function nothingToConfirm(isConfirmed: boolean): AppError {
  const why = isConfirmed
    ? 'Your second factor was confirmed already. If you lack its recovery codes, remove it and add it again.'
    : 'There is no second factor to confirm. Begin with POST /user/second-factor/begin.';
  return new AppError('conflict', why);
}

/** 50 bits: `abcde-fghij`. */
function newCode(): string {
  const letters = 'abcdefghijkmnpqrstuvwxyz23456789';
  const text = [...randomBytes(10)].map((byte) => letters[byte % letters.length]).join('');
  return `${text.slice(0, 5)}-${text.slice(5)}`;
}

function totpOf(secret: string, label: string): TOTP {
  return new TOTP({
    issuer: 'Atoll',
    label,
    secret: Secret.fromBase32(secret),
    algorithm: 'SHA1',
    digits: 6,
    period: stepSeconds,
  });
}
