import type { ClusterDriver, Exit } from '@atoll/cluster';
import type { Cause, Outcome, Passage, StepContext } from '@atoll/state-machine';
import type { EntityManager } from 'typeorm';
import type { DatabaseClock } from '../clock/database-clock.js';
import { PodEntity } from '../model/pod.entity.js';
import type { RunRow } from '../model/run-row.js';
import { endings, type RunEnd } from '../model/run-states.js';
import type { VmEntity } from '../model/vm.entity.js';
import { endOfRun } from '../usage/end-of-run.js';
import type { PodsSettings } from '../pods-settings.js';
import type { LateEnds } from '../usage/late-ends.js';
import type { Clusters } from './clusters.js';
import { endRun, observeRun, recordOutstandingEnd, type OverRun, type RunOf } from './runs.js';
import { troubleError } from './step-errors.js';
import { self, StepsOnCluster } from './steps-on-cluster.js';

/** Between two looks at what a cluster is at. */
export const lookAgainMs = 500;

type RunEvent = RunEnd<RunRow>['event'] | 'RESTART';

/** Steps of pods and of VMs, which a cluster runs. */
export abstract class RunSteps<
  Row extends PodEntity | VmEntity,
  State extends string,
  Event extends string,
> extends StepsOnCluster<Row, State, Event | RunEvent> {
  protected abstract readonly clusters: Clusters;
  protected abstract readonly lateEnds: LateEnds;
  protected abstract readonly clock: DatabaseClock;
  protected abstract readonly settings: PodsSettings;
  /** For a run to end by itself, once its end is requested. */
  protected abstract readonly graceMs: number;

  /** The present run. */
  protected abstract refOf(row: Row): RunOf;

  /** The state of the row, where the run is its present one and neither ends nor has ended. */
  protected abstract wantedStates(row: Row): Promise<{ state: string }[]>;

  /** `exit`: null where the run was removed from outside. */
  protected abstract readonly afterEnd: (
    row: Row,
    exit: Exit | null,
    firstBackOffMs: number,
    nowMs: number,
  ) => RunEnd<Row>;

  /** Of a row whose run runs. */
  protected abstract reviewRunning(
    row: Row,
    driver: ClusterDriver,
    context: StepContext,
  ): Promise<Outcome<Row, Event | RunEvent>>;

  /** A further run. One that waits for its back-off waits no longer. */
  async restart(manager: EntityManager, row: Row, cause: Cause): Promise<Row> {
    const anew = { failures: 0, nextRunAt: null, endReason: null };
    if (row.state !== 'restarting')
      return (await this.move(manager, row, 'RESTART', cause, anew as Partial<Row>)) ?? row;
    const key = this.refOf(row).id;
    await manager.update<RunRow>(this.entity, key, anew);
    await this.touch(manager, [key]);
    return Object.assign(row, anew);
  }

  protected override async entered(
    manager: EntityManager,
    row: Row,
    passage: Passage<State, Event | RunEvent>,
  ): Promise<void> {
    await super.entered(manager, row, passage);
    const start = row instanceof PodEntity ? row.start : 0;
    if (passage.event === 'FAILED' && endings.has(passage.from))
      await recordOutstandingEnd(manager, row, { ...this.refOf(row), start });
  }

  /**
   * By the database: once false, it stays so, since no run comes twice. Throws where it is wanted and the claim may
   * have run out, by the clock of this process, which may have been frozen until the answer came: another one may have
   * started the run since, and it may have ended.
   */
  protected async isWanted(row: Row, context: StepContext): Promise<boolean> {
    const [found] = await this.wantedStates(row);
    // What another process has brought to run is wanted, and is not to be removed for its sake.
    if (found && found.state !== 'running') context.signal.throwIfAborted();
    return found !== undefined;
  }

  /** When the run began; undefined while its cluster is at it. Throws what keeps it from its start. */
  protected async startOf(driver: ClusterDriver, row: Row, context: StepContext): Promise<Date | undefined> {
    const sight = await observeRun(driver, this.refOf(row), context.signal);
    if (sight.phase === 'running') return sight.startedAt;
    // It was quicker than this look: its end is that of a run like any other.
    if (sight.phase === 'ended') return sight.startedAt ?? sight.exit.at;
    if (sight.phase === 'preparing' && sight.trouble) throw troubleError(sight.trouble);
    return undefined;
  }

  protected async review(row: Row, context: StepContext): Promise<Outcome<Row, Event | RunEvent>> {
    const driver = await this.clusters.driverOf(row.gpuaasId);
    const sight = await observeRun(driver, this.refOf(row), context.signal);
    if (sight.phase === 'running') return this.reviewRunning(row, driver, context);
    if (sight.phase !== 'ended' && sight.phase !== 'absent') return { againAfterMs: lookAgainMs };
    const exit = sight.phase === 'ended' ? sight.exit : null;
    const nowMs = await this.clock.nowMs();
    return {
      decide: (manager, locked) => {
        const { event, values } = this.afterEnd(locked, exit, this.settings.restartMs, nowMs);
        const error = event === 'FAILED' ? { code: 'ended', message: values.endReason } : null;
        const ended = { ...values, endedAt: endOfRun(locked, exit) };
        return this.move(manager, locked, event, { ...self, reason: values.endReason }, ended, error);
      },
    };
  }

  /** The run that is over, with its exit where the cluster knows it. Requests its end where it is not. */
  protected async overRun(row: Row, context: StepContext): Promise<OverRun> {
    if (row.run === 0) return { exit: null };
    const driver = await this.clusters.driverOf(row.gpuaasId);
    const over = await endRun(driver, this.refOf(row), this.graceMs, context);
    if (over) await this.lateEnds.tell(row, over.exit);
    return over;
  }
}
