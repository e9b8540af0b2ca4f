import { messageOf } from '@atoll/errors';
import { newId, Statements } from '@atoll/database';
import { Rounds } from '@atoll/waiting';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { PodsSettings } from '../pods-settings.js';
import { LogInTrail, type Admission } from './admission-control.js';

const insertion = `INSERT INTO ssh_log_in (log_in_id, pod_id, pod_name, team_id, user_id, fingerprint, address)
  VALUES ($1, $2, $3, $4, $5, $6, $7)`;

const lostReason = 'the replica that held the connection was lost';

/**
 * What this replica says of the connections that it has open. Also of one that another has taken for lost meanwhile, as
 * it was frozen.
 */
const sight = `UPDATE ssh_log_in SET seen_at = clock_timestamp(), ended_at = NULL, end_reason = NULL
  WHERE log_in_id = ANY ($1::uuid[]) AND (ended_at IS NULL OR end_reason = '${lostReason}')`;

const endings = `UPDATE ssh_log_in SET ended_at = clock_timestamp() - e.age_ms * interval '1 millisecond', end_reason = e.reason
  FROM unnest($1::uuid[], $2::bigint[], $3::text[]) AS e (log_in_id, age_ms, reason) WHERE ssh_log_in.log_in_id = e.log_in_id`;

const silentSince = '(SELECT clock_timestamp() - make_interval(secs => $1))';
/**
 * Those that no replica says it has: it was killed, or could not write. The end is when they were last seen. Of what is
 * open, those that began lately are not read. An index of when they were seen would make each sight of each log-in
 * write all indexes of the table, which costs more than to read the row.
 */
const losses = `UPDATE ssh_log_in SET ended_at = COALESCE(seen_at, began_at), end_reason = '${lostReason}'
  WHERE log_in_id IN (SELECT log_in_id FROM ssh_log_in
    WHERE ended_at IS NULL AND began_at < ${silentSince} AND (seen_at IS NULL OR seen_at < ${silentSince})
    ORDER BY began_at LIMIT $2 FOR UPDATE SKIP LOCKED)
  RETURNING log_in_id`;

/** Between two times that a replica says what it has open, and tries again to write what has ended. */
const sightMs = 30_000;
/** Of silence, until a connection is taken for lost. */
const lostSeconds = 300;
/** Ends that wait for the database. Of more, the oldest are closed as lost ones are. */
const waitingAtMost = 10_000;
const atOnce = 1_000;

/** The audit trail in the database. */
@Injectable()
export class KeptLogIns extends LogInTrail implements OnApplicationBootstrap, OnModuleDestroy {
  readonly #logger = new Logger('SSH door');
  readonly #sights = new Rounds(() => this.keepUp().then(() => sightMs));
  readonly #open = new Set<string>();
  /** By log-in: what could not be written yet. */
  readonly #ends = new Map<string, { readonly reason: string; readonly atMs: number }>();
  #writing: Promise<void> | null = null;
  #isStopping = false;

  constructor(
    private readonly statements: Statements,
    private readonly settings: PodsSettings,
  ) {
    super();
  }

  onApplicationBootstrap(): void {
    if (!this.settings.workers.isIdle) this.#sights.start(sightMs);
  }

  async onModuleDestroy(): Promise<void> {
    this.#isStopping = true;
    await this.#sights.stop();
    await this.#writeEnds();
  }

  async began({ podId, podName, teamId, userId, fingerprint }: Admission, address: string): Promise<string> {
    const logInId = newId();
    await this.statements.query(insertion, [logInId, podId, podName, teamId, userId, fingerprint, address]);
    this.#open.add(logInId);
    return logInId;
  }

  /** Throws nothing: what cannot be written now is tried again. */
  async ended(logInId: string, reason: string): Promise<void> {
    this.#open.delete(logInId);
    this.#ends.set(logInId, { reason, atMs: Date.now() });
    const [oldest] = this.#ends.keys();
    if (this.#ends.size > waitingAtMost && oldest !== undefined) this.#ends.delete(oldest);
    await this.#writeEnds();
  }

  /**
   * Throws nothing, as each part is made again: says what is open, writes what has ended, and closes what other
   * replicas have lost.
   */
  async keepUp(): Promise<void> {
    await this.#writeEnds();
    try {
      if (this.#open.size > 0) await this.statements.query(sight, [[...this.#open]]);
      for (let lost = atOnce; lost === atOnce && !this.#isStopping;) {
        ({ length: lost } = await this.statements.query(losses, [lostSeconds, atOnce]));
      }
    } catch (error) {
      this.#logger.warn(`Cannot record which log-ins are open; retrying: ${messageOf(error)}`);
    }
  }

  /** One statement at a time, however many leave at once: what comes meanwhile goes with the next. */
  #writeEnds(): Promise<void> {
    return (this.#writing ??= this.#writeAllEnds().finally(() => (this.#writing = null)));
  }

  async #writeAllEnds(): Promise<void> {
    try {
      while (this.#ends.size > 0) {
        const ends = [...this.#ends].slice(0, atOnce);
        const [nowMs, ids, reasons] = [Date.now(), ends.map(([id]) => id), ends.map(([, { reason }]) => reason)];
        const ages = ends.map(([, { atMs }]) => Math.max(0, nowMs - atMs));
        await this.statements.query(endings, [ids, ages, reasons]);
        for (const id of ids) this.#ends.delete(id);
      }
    } catch (error) {
      this.#logger.warn(`Cannot record the end of log-ins; retrying: ${messageOf(error)}`);
    }
  }
}
