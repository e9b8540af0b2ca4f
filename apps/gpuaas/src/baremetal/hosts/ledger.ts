import type { BaremetalAttempt } from '@atoll/contracts/gpuaas';
import { Statements } from '@atoll/database';
import { StepFailed } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { isCrowded } from './host-driver.js';
import type { AttemptAction } from './attempt.entity.js';

export interface AttemptOf {
  readonly instanceId: string | null;
  readonly nodeId: string;
  readonly action: AttemptAction;
  readonly step: string;
}

const columns = `attempt_id, action, step, started_at, ended_at, outcome, reason`;
type AttemptRow = Omit<BaremetalAttempt, 'started_at' | 'ended_at'> & { started_at: Date; ended_at: Date | null };

/** Attempts of a node that stay, however old; older ones go after so many days, up to so many with each new one. */
const kept = 100;
const keptDays = 30;
const forgottenAtOnce = 100;

/** The ledger of what was tried on hosts: a row before a host is touched, and its end afterwards. */
@Injectable()
export class Ledger {
  constructor(private readonly statements: Statements) {}

  /**
   * Runs one attempt; one that never began is not recorded. An open earlier attempt of the same subject is marked
   * interrupted.
   */
  async record<T>({ instanceId, nodeId, action, step }: AttemptOf, work: () => Promise<T>): Promise<T> {
    const [begun] = await this.statements.query<{ attempt_id: string }>(
      `WITH interrupted AS (
         UPDATE baremetal_attempt SET outcome = 'interrupted', ended_at = clock_timestamp()
         WHERE outcome = 'running' AND node_id = $2 AND instance_id IS NOT DISTINCT FROM $1
       ), forgotten AS (
         DELETE FROM baremetal_attempt WHERE attempt_id IN (
           SELECT attempt_id FROM (
             SELECT attempt_id, started_at FROM baremetal_attempt WHERE node_id = $2 ORDER BY attempt_id LIMIT ${forgottenAtOnce}
           ) oldest
           WHERE started_at < clock_timestamp() - interval '${keptDays} days' AND attempt_id < (
             SELECT attempt_id FROM baremetal_attempt WHERE node_id = $2 ORDER BY attempt_id DESC LIMIT 1 OFFSET ${kept - 1}
           )
         )
       )
       INSERT INTO baremetal_attempt (instance_id, node_id, action, step, started_at, outcome)
       VALUES ($1::uuid, $2::bigint, $3, $4, clock_timestamp(), 'running') RETURNING attempt_id`,
      [instanceId, nodeId, action, step],
    );
    const end = (outcome: string, reason: string | null) =>
      this.statements.query(
        `UPDATE baremetal_attempt SET outcome = $2, reason = $3, ended_at = clock_timestamp() WHERE attempt_id = $1 AND outcome = 'running'`,
        [begun?.attempt_id, outcome, reason],
      );
    try {
      const result = await work();
      await end('succeeded', null);
      return result;
    } catch (error) {
      if (isCrowded(error))
        await this.statements.query('DELETE FROM baremetal_attempt WHERE attempt_id = $1', [begun?.attempt_id]);
      else if (error instanceof StepFailed) await end('failed', error.message);
      else await end('interrupted', 'There was no response in time.').catch(() => undefined);
      throw error;
    }
  }

  /** What is still open of an instance that moves on was interrupted. */
  async interrupt(manager: EntityManager, instanceId: string, nodeId: string): Promise<void> {
    await manager.query(
      `UPDATE baremetal_attempt SET outcome = 'interrupted', ended_at = clock_timestamp() WHERE node_id = $2 AND instance_id = $1 AND outcome = 'running'`,
      [instanceId, nodeId],
    );
  }

  /** The attempts of each of these instances, in their order; the last 100 of each. */
  async ofInstances(manager: EntityManager, instanceIds: readonly string[]): Promise<Map<string, BaremetalAttempt[]>> {
    const rows = await manager.query<(AttemptRow & { instance_id: string })[]>(
      `SELECT instance_id, last.* FROM unnest($1::uuid[]) asked (instance_id), LATERAL (
         SELECT ${columns} FROM baremetal_attempt a WHERE a.instance_id = asked.instance_id ORDER BY attempt_id DESC LIMIT 100
       ) last ORDER BY attempt_id::bigint`,
      [instanceIds],
    );
    return grouped(rows, ({ instance_id }) => instance_id);
  }

  /** The last 20 attempts of each of these nodes that belong to no instance, in their order. */
  async ofNodes(manager: EntityManager, nodeIds: readonly string[]): Promise<Map<string, BaremetalAttempt[]>> {
    const rows = await manager.query<(AttemptRow & { node_id: string })[]>(
      `SELECT node_id, last.* FROM unnest($1::bigint[]) asked (node_id), LATERAL (
         SELECT ${columns} FROM baremetal_attempt a WHERE a.node_id = asked.node_id AND a.instance_id IS NULL ORDER BY attempt_id DESC LIMIT 20
       ) last ORDER BY attempt_id::bigint`,
      [nodeIds],
    );
    return grouped(rows, ({ node_id }) => node_id);
  }
}

function grouped<Row extends AttemptRow>(
  rows: readonly Row[],
  keyOf: (row: Row) => string,
): Map<string, BaremetalAttempt[]> {
  const views = new Map<string, BaremetalAttempt[]>();
  for (const row of rows) {
    const { attempt_id, action, step, outcome, reason } = row;
    const [started_at, ended_at] = [row.started_at.toISOString(), row.ended_at?.toISOString() ?? null];
    const view = { attempt_id, action, step, started_at, ended_at, outcome, reason };
    views.set(keyOf(row), [...(views.get(keyOf(row)) ?? []), view]);
  }
  return views;
}
