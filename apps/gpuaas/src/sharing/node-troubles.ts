import { queuedMs, Statements } from '@atoll/database';
import { messageOf } from '@atoll/errors';
import { StepFailed, type StepContext } from '@atoll/state-machine';
import { untilAborted } from '@atoll/waiting';
import { Injectable, Logger } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { GpuaasSettings } from '../gpuaas-settings.js';
import type { PlacedOperation } from '../model/node-trouble.entity.js';
import { isNode } from './lease-store.js';

/** In SQL, of a `gpu`: its node has failed of late. Read once a statement, however many GPUs that looks at. */
export const isAvoided = `(gpu.node_id IN (SELECT node_id FROM node_trouble WHERE avoided_until > (SELECT clock_timestamp())))`;

/** For how long a node is avoided: doubled with each further failure, up to `mostMs`. */
const avoided = { firstMs: 30_000, mostMs: 600_000 };

/** A call that was cut off earlier may have had too little time, since its request came late to its node. */
const hangsAfterMs = 5_000;

export interface Asking {
  readonly operation: PlacedOperation;
  /** Of the row whose step asks: a node, or nothing is remembered. */
  readonly lane: string;
  /** Whether the node is known to have failed at this operation. */
  readonly isTroubled: boolean;
  readonly context: StepContext;
}

/**
 * Remembers which nodes fail at what they are asked to do for those who are placed there: `isAvoided` is what placing
 * makes of it. Only what a node does counts, as none of it follows from what a tenant sends: it refuses, fails, or does
 * not answer.
 */
@Injectable()
export class NodeTroubles {
  private readonly logger = new Logger(NodeTroubles.name);

  constructor(
    private readonly statements: Statements,
    private readonly settings: GpuaasSettings,
  ) {}

  /** Asks a node, and remembers or forgets its trouble by what comes of it. Throws what `call` throws. */
  async ask<Answer>(asking: Asking, call: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
    const { context, isTroubled } = asking;
    const { signal } = context;
    const clock = () => performance.now() - queuedMs();
    const begunAtMs = clock();
    let answer: Answer;
    try {
      answer = await untilAborted(signal, call(signal));
    } catch (error) {
      const reason = this.failureOf(error, context, clock() - begunAtMs);
      if (reason !== undefined) await this.note(asking, reason);
      throw error;
    }
    if (isTroubled) await this.forget(asking);
    return answer;
  }

  /** Why each of these nodes that are avoided is, by id. */
  async reasonsOf(manager: EntityManager, nodeIds: readonly string[]): Promise<Map<string, string>> {
    const rows = await manager.query<{ nodeId: string; reason: string; failedAt: Date; avoidedUntil: Date }[]>(
      `SELECT DISTINCT ON (node_id) node_id AS "nodeId", reason, failed_at AS "failedAt", avoided_until AS "avoidedUntil"
       FROM node_trouble WHERE node_id = ANY ($1::bigint[]) AND avoided_until > clock_timestamp()
       ORDER BY node_id, avoided_until DESC`,
      [nodeIds],
    );
    return new Map(
      rows.map(({ nodeId, reason, failedAt, avoidedUntil }) => [
        nodeId,
        `${reason} It failed at ${failedAt.toISOString()}; other nodes are preferred until ${avoidedUntil.toISOString()}.`,
      ]),
    );
  }

  /**
   * What is the node's doing; undefined: it is not, or nobody can tell. The signal is read anew, after the call: a
   * process that stood still meanwhile finds that its claim is lost. `lastedMs`: without waits for the database.
   */
  private failureOf(error: unknown, { signal }: StepContext, lastedMs: number): string | undefined {
    if (!signal.aborted) return error instanceof StepFailed ? error.message : undefined;
    const isTimeout = signal.reason instanceof DOMException && signal.reason.name === 'TimeoutError';
    const { stepMs = Infinity } = this.settings.workers;
    return isTimeout && lastedMs >= Math.min(hangsAfterMs, stepMs / 2) ? 'There was no response in time.' : undefined;
  }

  /** Says so in the log once, and nothing while the node is avoided already. */
  private async note({ lane, operation }: Asking, reason: string): Promise<void> {
    if (!isNode(lane)) return;
    try {
      const [noted] = await this.statements.query<{ nodeName: string; avoidedUntil: Date }>(
        `INSERT INTO node_trouble AS known (node_id, operation, failures, reason, failed_at, avoided_until)
         VALUES ($1, $2, 1, $3, clock_timestamp(), clock_timestamp() + $4::int * interval '1 millisecond')
         ON CONFLICT (node_id, operation) DO UPDATE SET failures = known.failures + 1, reason = excluded.reason, failed_at = excluded.failed_at,
           avoided_until = excluded.failed_at + LEAST($4::int << LEAST(known.failures, 10), $5::int) * interval '1 millisecond'
         WHERE known.avoided_until <= clock_timestamp()
         RETURNING avoided_until AS "avoidedUntil", (SELECT node_name FROM node WHERE node.node_id = known.node_id) AS "nodeName"`,
        [lane, operation, reason, avoided.firstMs, avoided.mostMs],
      );
      if (!noted) return;
      const until = noted.avoidedUntil.toISOString();
      this.logger.warn(
        `Node ${noted.nodeName} failed (${operation}); other nodes are preferred until ${until}: ${reason}`,
      );
    } catch (error) {
      // The step tells what has failed; the next failure is noted.
      this.logger.warn(`Cannot note that a node failed (${operation}): ${messageOf(error)}`);
    }
  }

  private async forget({ lane, operation }: Asking): Promise<void> {
    const [well] = await this.statements.query<{ nodeName: string }>(
      `DELETE FROM node_trouble USING node WHERE node_trouble.node_id = $1 AND operation = $2 AND node.node_id = node_trouble.node_id
       RETURNING node_name AS "nodeName"`,
      [lane, operation],
    );
    if (well) this.logger.log(`Node ${well.nodeName} works again (${operation}).`);
  }
}
