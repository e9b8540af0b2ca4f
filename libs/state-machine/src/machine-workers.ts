import { inBackground, ReservedStatements, type Transactions } from '@atoll/database';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { ClaimKeeper } from './claim-keeper.js';
import { DuePoll } from './due-poll.js';
import type { DurableMachine } from './durable-machine.js';
import { HistoryUpkeep } from './history-upkeep.js';
import type { MachineRow } from './machine-row.js';
import { MachineWorker } from './machine-worker.js';
import type { WorkerOptions } from './worker-options.js';

type Worker = MachineWorker<MachineRow, string, string>;

/** The workers of a service, one per machine. They start with the application and stop before its connections close. */
export class MachineWorkers implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly workers: readonly Worker[];
  /** What removes old transitions, where these are not kept for ever. */
  readonly history: HistoryUpkeep | undefined;
  private readonly duePoll: DuePoll;
  /** One connection: what takes those of background work, however long, must not have claims run out. */
  private readonly beats: ReservedStatements;

  constructor(
    readonly machines: readonly DurableMachine<MachineRow>[],
    dataSource: DataSource,
    transactions: Transactions,
    private readonly options: WorkerOptions & {
      /** Do not start the workers, for specs that run the steps themselves. */ isIdle?: boolean;
      /** Days for which transitions are kept in `machine_history`; for ever without. */ historyDays?: number;
    },
  ) {
    this.beats = new ReservedStatements(dataSource, { purpose: 'claims', poolSize: 1 });
    const keeper = new ClaimKeeper(dataSource, undefined, this.beats);
    this.duePoll = new DuePoll(dataSource, options.pollMs);
    if (options.historyDays !== undefined) this.history = new HistoryUpkeep(dataSource, options.historyDays);
    this.workers = machines.map(
      (machine) => new MachineWorker(machine, dataSource, transactions, options, keeper, this.duePoll),
    );
  }

  onApplicationBootstrap(): void {
    if (this.options.isIdle) return;
    for (const [at, worker] of this.workers.entries()) {
      this.machines[at]?.onDue(worker.wake);
      worker.start();
    }
    this.history?.onApplicationBootstrap();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all([...this.workers.map((worker) => worker.stop()), this.history?.beforeApplicationShutdown()]);
    await this.beats.onApplicationShutdown();
  }

  /** Workers of the machines that have something to do. For specs. */
  async due(): Promise<Worker[]> {
    const machines = new Set(await inBackground(() => this.duePoll.due(this.machines)));
    return this.machines.flatMap((machine, at) => (machines.has(machine) ? (this.workers[at] ?? []) : []));
  }

  /** Sweeps one machine after the other and runs its steps until none is due. For specs. */
  async settle(): Promise<void> {
    let due = await this.due();
    for (const worker of this.workers) {
      if (await worker.sweep()) due = await this.due();
      while (due.includes(worker) && (await worker.doNext())) due = await this.due();
    }
  }
}
