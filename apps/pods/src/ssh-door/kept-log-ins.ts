import { newId, Statements } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { LogInTrail, type Admission } from './doorkeeper.js';

const insertion = `INSERT INTO ssh_log_in (log_in_id, pod_id, pod_name, team_id, user_id, fingerprint, address)
  VALUES ($1, $2, $3, $4, $5, $6, $7)`;

/** The audit trail in the database. */
@Injectable()
export class KeptLogIns extends LogInTrail {
  constructor(private readonly statements: Statements) {
    super();
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
}
