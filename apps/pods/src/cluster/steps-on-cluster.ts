import { DurableMachine, type MachineError, type Outcome, type Passage, type StepContext } from '@atoll/state-machine';
import type { EntityManager } from 'typeorm';
import { shownError, type FailingRow } from '../model/failing-row.js';
import { requireLive } from '../model/live-row.js';
import { endings } from '../model/run-states.js';
import { stepError } from './step-errors.js';

/** The cause of what this service does by itself. */
export const self = { actor: 'system:pods' };

/** Steps of rows of which a cluster has something. */
export abstract class StepsOnCluster<
  Row extends FailingRow,
  State extends string,
  Event extends string,
> extends DurableMachine<Row, State, Event> {
  /** Those that wait for one cluster hold up nobody who waits for another. */
  protected readonly lanes = `ARRAY[gpuaas_id::text]`;
  override readonly owner: string = 'team_id';

  /** As callers are told of a row: `VM`. */
  protected abstract readonly what: string;

  /** As `step`. What a cluster or another service refuses may be thrown as it is. */
  protected abstract work(row: Row, context: StepContext): Promise<Outcome<Row, Event>>;

  async step(row: Row, context: StepContext): Promise<Outcome<Row, Event>> {
    try {
      return await this.work(row, context);
    } catch (error) {
      throw stepError(error, endings.has(row.state));
    }
  }

  /** Locks a row until the transaction ends. Throws `not_found` for one that was deleted or never was. */
  async lockLive(manager: EntityManager, key: string): Promise<Row> {
    return requireLive(await this.lock(manager, key), this.what);
  }

  /** Keeps why a row fails: what goes wrong while it ends would take the place of its last error. */
  protected override async entered(
    manager: EntityManager,
    row: Row,
    { from, event }: Passage<State, Event>,
  ): Promise<void> {
    if (event !== 'FAILED' || from === 'failing') return;
    await manager.update<FailingRow>(this.entity, this.keyOf(row), { failure: () => 'last_error' });
  }

  /** The outcome that nothing of a row is left on its cluster. */
  protected gone(row: Row, event: Event): Outcome<Row, Event> {
    const reason = this.whyFailing(row);
    return { event, ...(reason && { reason }) };
  }

  /** Null for a row that ends for another reason. */
  protected whyFailing(row: Row): MachineError | null {
    return row.state === 'failing' ? shownError(row) : null;
  }
}
