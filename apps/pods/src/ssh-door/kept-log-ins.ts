import { newId, Statements } from '@atoll/database';
import { Rounds } from '@atoll/waiting';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { PodsSettings } from '../pods-settings.js';
import { LogInTrail, type Admission } from './doorkeeper.js';

const insertion = `INSERT INTO ssh_log_in (log_in_id, pod_id, pod_name, team_id, user_id, fingerprint, address)
  VALUES ($1, $2, $3, $4, $5, $6, $7)`;

const removal = `DELETE FROM ssh_log_in WHERE log_in_id IN (
  SELECT log_in_id FROM ssh_log_in WHERE began_at < clock_timestamp() - make_interval(days => $1) LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING log_in_id`;

const upkeepMs = 600_000;
const atOnce = 1_000;

/** The audit trail in the database, for as long as `ATOLL_LOG_IN_RETENTION` says. */
@Injectable()
export class KeptLogIns extends LogInTrail implements OnApplicationBootstrap, OnModuleDestroy {
  readonly #logger = new Logger('SSH door');
  readonly #rounds = new Rounds(() => this.forgetOld().then(() => upkeepMs));
  #isStopping = false;

  constructor(
    private readonly statements: Statements,
    private readonly settings: PodsSettings,
  ) {
    super();
  }

  onApplicationBootstrap(): void {
    if (!this.settings.workers.isIdle) this.#rounds.start(upkeepMs);
  }

  async onModuleDestroy(): Promise<void> {
    this.#isStopping = true;
    await this.#rounds.stop();
  }

  async began({ podId, podName, teamId, userId, fingerprint }: Admission, address: string): Promise<string> {
    const logInId = newId();
    await this.statements.query('ssh.log-in.began', insertion, [logInId, podId, podName, teamId, userId, fingerprint, address]);
    return logInId;
  }

  async ended(logInId: string, reason: string): Promise<void> {
    const update = 'UPDATE ssh_log_in SET ended_at = clock_timestamp(), end_reason = $2 WHERE log_in_id = $1';
    await this.statements.query('ssh.log-in.ended', update, [logInId, reason]);
  }

  /** Throws nothing: what stays is removed the next time. Replicas do not wait for each other. */
  async forgetOld(): Promise<void> {
    try {
      for (let removed = atOnce; removed === atOnce && !this.#isStopping;) {
        ({ length: removed } = await this.statements.query('ssh.log-in.forget', removal, [this.settings.logInRetentionDays, atOnce]));
      }
    } catch (error) {
      this.#logger.warn(`Cannot remove old log-ins; retrying: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}
