import { setTimeout as delay } from 'node:timers/promises';
import { Statements, Transactions } from '@atoll/database';
import { StepFailed } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';

/** What a simulated node is asked to do. */
export type SimulatedOperation = 'init' | 'switch' | 'observe' | 'confirm' | 'occupy' | 'vacate';
/**
 * slow: takes 2 s; refuse: worth another try; fail: for good; hang: no end; busy: memory stays held; lie: says it is
 * done, and is not.
 */
export type FaultKind = 'slow' | 'refuse' | 'fail' | 'hang' | 'busy' | 'lie';

const named = /(init|switch|observe|confirm|occupy|vacate)-(slow|refuse|fail|hang|busy|lie)/g;
const slowMs = 2_000;
const foreverMs = 2 ** 31 - 1;

/**
 * What goes wrong on simulated nodes: chosen by a node's name (`gpu-01.switch-hang` never ends a switch,
 * `a.init-fail.vacate-slow` does two things wrong), or through the test door `inject`, which goes before the name.
 */
@Injectable()
export class SimulatedFaults {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
  ) {}

  /** The next `times` operations of this kind on the node go wrong. */
  async inject(nodeName: string, operation: SimulatedOperation, kind: FaultKind, times = 1): Promise<void> {
    await this.transactions.run((manager) =>
      manager.query(
        `INSERT INTO simulated_fault (node_name, operation, kind, times) VALUES ($1, $2, $3, $4)
         ON CONFLICT (node_name, operation) DO UPDATE SET kind = excluded.kind, times = excluded.times`,
        [nodeName, operation, kind, times],
      ),
    );
  }

  /** Takes back what was injected. */
  async mend(nodeName: string): Promise<void> {
    await this.transactions.run((manager) =>
      manager.query('DELETE FROM simulated_fault WHERE node_name = $1', [nodeName]),
    );
  }

  /**
   * What goes wrong now; undefined for nothing. `slow`, `hang`, `refuse` and `fail` have happened when it returns or
   * throws.
   */
  async of(nodeName: string, operation: SimulatedOperation, signal: AbortSignal): Promise<FaultKind | undefined> {
    const kind = (await this.injected(nodeName, operation)) ?? fromName(nodeName, operation);
    if (kind === 'refuse') throw new StepFailed('node_refused', `The node refused: ${operation}.`);
    if (kind === 'fail' && operation !== 'switch')
      throw new StepFailed('node_failed', `The node failed: ${operation}.`, true);
    if (kind === 'slow' && operation !== 'switch') await delay(slowMs, undefined, { signal });
    if (kind === 'hang' && operation !== 'switch') await delay(foreverMs, undefined, { signal, ref: false });
    return kind;
  }

  private async injected(nodeName: string, operation: SimulatedOperation): Promise<FaultKind | undefined> {
    const [fault] = await this.statements.query<{ kind: FaultKind }>(
      `UPDATE simulated_fault SET times = times - 1 WHERE node_name = $1 AND operation = $2 AND times > 0 RETURNING kind`,
      [nodeName, operation],
    );
    return fault?.kind;
  }
}

function fromName(nodeName: string, operation: SimulatedOperation): FaultKind | undefined {
  for (const [, of, kind] of nodeName.matchAll(named)) if (of === operation) return kind as FaultKind;
  return undefined;
}
