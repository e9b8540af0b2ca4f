import type { Transactions } from '@atoll/database';
import type { BeforeApplicationShutdown, OnApplicationBootstrap } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { ClaimKeeper } from './claim-keeper.js';
import { DuePoll } from './due-poll.js';
import type { DurableMachine } from './durable-machine.js';
import type { MachineRow } from './machine-row.js';
import { MachineWorker, type WorkerOptions } from './machine-worker.js';

/** The workers of a service, one per machine. They start with the application and stop before its connections close. */
export class MachineWorkers implements OnApplicationBootstrap, BeforeApplicationShutdown {
  readonly workers: readonly MachineWorker<MachineRow, string, string>[];

  constructor(
    readonly machines: readonly DurableMachine<MachineRow>[],
    dataSource: DataSource,
    transactions: Transactions,
    private readonly options: WorkerOptions & {
      /** Do not start the workers, for specs that run the steps themselves. */ isIdle?: boolean;
    },
  ) {
    const keeper = new ClaimKeeper(dataSource);
    const duePoll = new DuePoll(dataSource, options.pollMs);
    this.workers = machines.map((machine) => new MachineWorker(machine, dataSource, transactions, options, keeper, duePoll));
  }

  onApplicationBootstrap(): void {
    if (this.options.isIdle) return;
    for (const [at, worker] of this.workers.entries()) {
      this.machines[at]?.onDue(worker.wake);
      worker.start();
    }
  }

  async beforeApplicationShutdown(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.stop()));
  }
}
