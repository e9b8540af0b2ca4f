import { messageOf } from '@atoll/errors';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { OutageLog, Transactions } from '@atoll/database';
import { backOffMs, Rounds, type BackOff } from '@atoll/waiting';
import { createTransport } from 'nodemailer';
import type { EntityManager } from 'typeorm';
import { LinkTokens } from '../tokens/link-tokens.js';
import { TeamsSettings } from '../teams-settings.js';
import { mailText } from './mail-text.js';
import { TokenBuckets, type BucketRate } from '../tries/token-buckets.js';
import { noTeam, type MailEntity } from '../model/mail.entity.js';

const everyMs = 500;
/** How long after each claim a mail is due again: by then the replica that claimed it has sent it, or has crashed. */
const dueAgain: BackOff = { firstMs: 60_000, maxMs: 3_600_000, jitter: 0 };
const givenUpAfterHours = 24;
const forgetEveryMs = 60_000;
/** Old mail that one statement removes; the next goes with the next mail. */
const forgottenAtOnce = 1_000;
/** Invitations to one address, whoever sends them: ten at once, then one each time that so many minutes have passed. */
const postponedMinutes = 6;
const invitations: BucketRate = { refillMs: postponedMinutes * 60_000, capacityMs: 10 * postponedMinutes * 60_000 };
const timeoutMs = 15_000;
/**
 * How long a stop waits for the answer of the mail server: it has to leave time for the rest within the 10 s that a
 * container is given by default.
 */
const lastAnswerMs = 2_000;

type Claimed = Pick<MailEntity, 'id' | 'kind' | 'address' | 'data' | 'tries'> & {
  team_id: string;
  link_id: string | null;
  /** Of its link. */
  expires_at: Date | null;
};

/**
 * Sends mail: at least once, again after a failure with back-off for a day. Any replica takes any mail. Several are
 * sent at once, so that a slow server delays no other for long; invitations, of which one team may send hundreds, leave
 * places to what somebody waits for.
 */
@Injectable()
export class MailSender implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('Mail');
  private readonly outages = new OutageLog(this.logger);
  private readonly server: ReturnType<typeof createTransport> | undefined;
  private readonly rounds = new Rounds(() => this.turn().then(() => everyMs));
  private isStopped = false;
  /** What is being sent. */
  private readonly underWay = new Map<Promise<void>, MailEntity['kind']>();
  /** Ends what is being sent. */
  private readonly giveUp = new AbortController();
  /** Of `performance.now()`. */
  private forgetAtMs = 0;
  /** Whose invitation this replica claimed last: the next one is that of the team behind it. */
  private lastTeam = noTeam;

  constructor(
    private readonly transactions: Transactions,
    private readonly links: LinkTokens,
    private readonly buckets: TokenBuckets,
    private readonly settings: TeamsSettings,
  ) {
    const timeouts = { connectionTimeout: timeoutMs, greetingTimeout: timeoutMs, socketTimeout: timeoutMs };
    const url = settings.smtpUrl;
    this.server =
      url === undefined
        ? undefined
        : createTransport({ url, ...timeouts, disableFileAccess: true, disableUrlAccess: true });
  }

  onApplicationBootstrap(): void {
    if (this.server) this.rounds.start();
  }

  async onModuleDestroy(): Promise<void> {
    this.isStopped = true;
    const patience = setTimeout(() => this.giveUp.abort(), lastAnswerMs);
    await this.rounds.stop();
    await Promise.all(this.underWay.keys());
    clearTimeout(patience);
    this.server?.close();
  }

  private async turn(): Promise<void> {
    try {
      while (!this.isStopped && this.underWay.size < this.settings.mailsAtOnce && (await this.beginNext()));
    } catch (error) {
      this.outages.log('warn', 'Mail cannot be read; retrying', error);
    }
  }

  /** Begins to send the next one. Whether there was one. */
  private async beginNext(): Promise<boolean> {
    await this.forgetOld();
    const mail = await this.transactions.run((manager) => this.claim(manager));
    if (!mail) return false;
    if (mail === 'not now') return true;
    const sending = this.deliver(mail).finally(() => {
      this.underWay.delete(sending);
      this.rounds.wake();
    });
    this.underWay.set(sending, mail.kind);
    return true;
  }

  private async deliver(mail: Claimed): Promise<void> {
    try {
      if (mail.kind !== 'reset' || mail.expires_at !== null) await this.send(mail);
      await this.remove(mail.id);
    } catch (error) {
      const reason = messageOf(error);
      this.logger.warn({
        message: `The mail server did not accept a mail; retrying: ${reason}`,
        mail_id: mail.id,
        kind: mail.kind,
        tries: mail.tries,
      });
    }
  }

  private mayInvite(): boolean {
    const invitationsNow = [...this.underWay.values()].filter((kind) => kind === 'invitation');
    return invitationsNow.length < this.settings.mailsAtOnce / 2;
  }

  /**
   * The next that is due, not due again until this replica has had its time: what somebody waits for before
   * invitations. One team may send hundreds of those, so teams take turns. A request for a new password gets its link
   * here, if there is such a user.
   */
  private async claim(manager: EntityManager): Promise<Claimed | 'not now' | undefined> {
    const [mail] = await manager.query<Claimed[]>(
      `SELECT id, kind, address, data, tries + 1 AS tries, link_id, team_id,
         (SELECT expires_at FROM one_time_link WHERE one_time_link.id = link_id) AS expires_at
       FROM mail WHERE id = COALESCE(
         (SELECT id FROM mail WHERE kind = 'reset' AND due_at <= now() ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED),
         (SELECT id FROM mail WHERE kind = 'notice' AND due_at <= now() ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED),
         (SELECT id FROM mail WHERE $2::boolean AND kind = 'invitation' AND due_at <= now() AND team_id > $1 ORDER BY team_id, due_at LIMIT 1 FOR UPDATE SKIP LOCKED),
         (SELECT id FROM mail WHERE $2::boolean AND kind = 'invitation' AND due_at <= now() ORDER BY team_id, due_at LIMIT 1 FOR UPDATE SKIP LOCKED)) FOR UPDATE`,
      [this.lastTeam, this.mayInvite()],
    );
    if (!mail) return undefined;
    if (mail.kind === 'invitation') this.lastTeam = mail.team_id;
    await manager.query(`UPDATE mail SET tries = $2, due_at = now() + $3 * interval '1 millisecond' WHERE id = $1`, [
      mail.id,
      mail.tries,
      backOffMs(dueAgain, mail.tries),
    ]);
    if (mail.kind === 'invitation' && !(await this.mayGo(manager, mail))) return 'not now';
    if (mail.kind !== 'reset' || mail.link_id !== null) return mail;
    const [user] = await manager.query<{ id: string; email: string }[]>(
      'SELECT id, email FROM "user" WHERE email = $1 FOR KEY SHARE',
      [mail.address],
    );
    if (!user) return mail;
    const { id, expires_at } = await this.links.issue(manager, {
      userId: user.id,
      email: user.email,
      isProof: true,
      replaces: 'none',
    });
    await manager.query('UPDATE mail SET link_id = $2 WHERE id = $1', [mail.id, id]);
    return { ...mail, link_id: id, expires_at: new Date(expires_at) };
  }

  /** Not one whose link was replaced meanwhile, and no more than an address may get within an hour: they go later. */
  private async mayGo(manager: EntityManager, { id, link_id, tries, address }: Claimed): Promise<boolean> {
    const live = await manager.query<object[]>('SELECT FROM one_time_link WHERE id = $1 AND used_at IS NULL', [
      link_id,
    ]);
    if (live.length === 0) {
      await manager.query('DELETE FROM mail WHERE id = $1', [id]);
      return false;
    }
    if (tries > 1 || (await this.buckets.takeWithin(manager, [address, 'invitations'], invitations))) return true;
    await manager.query(
      `UPDATE mail SET tries = 0, due_at = now() + interval '${postponedMinutes} minutes' WHERE id = $1`,
      [id],
    );
    return false;
  }

  /**
   * Removes some of the mail that was tried for a day. Resolves with whether there may be more. Replicas do not wait
   * for each other.
   */
  async forgetSome(): Promise<boolean> {
    const forgotten = await this.transactions.run((manager) =>
      manager.query<object[]>(
        `WITH forgotten AS (
           DELETE FROM mail WHERE id IN (
             SELECT id FROM mail WHERE created_at < now() - interval '${givenUpAfterHours} hours' LIMIT ${forgottenAtOnce} FOR UPDATE SKIP LOCKED
           ) RETURNING id)
         SELECT FROM forgotten`,
      ),
    );
    return forgotten.length === forgottenAtOnce;
  }

  private async forgetOld(): Promise<void> {
    if (this.forgetAtMs > performance.now()) return;
    this.forgetAtMs = performance.now() + forgetEveryMs;
    if (await this.forgetSome()) this.forgetAtMs = 0;
  }

  private async send(mail: Claimed): Promise<void> {
    const { publicUrl, ssoFile } = this.settings;
    const { hostname } = new URL(publicUrl);
    const { link_id, expires_at } = mail;
    const link =
      link_id !== null && expires_at !== null ? { url: this.links.urlOf(link_id), expiresAt: expires_at } : null;
    await this.server?.sendMail({
      from: this.settings.mailFrom ?? `Atoll <no-reply@${hostname}>`,
      to: { name: '', address: mail.address },
      messageId: `<${mail.id}@${hostname}>`,
      headers: { 'Auto-Submitted': 'auto-generated' },
      signal: AbortSignal.any([this.giveUp.signal, AbortSignal.timeout(this.settings.mailPatienceMs)]),
      ...mailText(mail, { publicUrl, hasProviders: ssoFile !== undefined }, link),
    });
  }

  private async remove(id: string): Promise<void> {
    await this.transactions.run((manager) => manager.query('DELETE FROM mail WHERE id = $1', [id]));
  }
}
