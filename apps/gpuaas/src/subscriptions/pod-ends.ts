import { Statements } from '@atoll/database';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { drainingMs } from '../model/workload.machine.js';

/**
 * When the pods service last ended a pod of a team: a sign that it is at work, and only needs its time. In the
 * database, since one replica hears of an end, and any replica moves the workloads that wait.
 */
@Injectable()
export class PodEnds implements OnModuleInit {
  constructor(private readonly statements: Statements) {}

  /** All replicas may have been away: from the start of one on, pods has its time again. */
  async onModuleInit(): Promise<void> {
    await this.statements.query(
      `INSERT INTO service_start (started_at) VALUES (clock_timestamp())
       ON CONFLICT (is_only) DO UPDATE SET started_at = excluded.started_at`,
      [],
    );
  }

  /** In the row of the pod, which the transaction has locked: the ends of a team do not wait for each other. */
  async note(manager: EntityManager, podId: string, teamId: string): Promise<void> {
    await manager.query('UPDATE pod_end SET team_id = $2, ended_at = clock_timestamp() WHERE pod_id = $1', [
      podId,
      teamId,
    ]);
  }

  /** For how many milliseconds a draining workload still waits for its pod, in whole seconds; 0 or less: no longer. */
  async leftMs(workloadId: string): Promise<number> {
    const [{ left_seconds = 0 } = {}] = await this.statements.query<{ left_seconds: number }>(
      `SELECT ceil(extract(epoch FROM GREATEST(
         deadline_at - $2 * interval '1 millisecond',
         (SELECT max(ended_at) FROM pod_end WHERE pod_end.team_id = workload.team_id),
         (SELECT started_at FROM service_start)
       ) + $3 * interval '1 millisecond' - clock_timestamp()))::integer AS left_seconds
       FROM workload WHERE workload_id = $1`,
      [workloadId, drainingMs.longest, drainingMs.quiet],
    );
    return left_seconds * 1_000;
  }
}
