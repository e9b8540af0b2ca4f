import { setTimeout as delay } from 'node:timers/promises';
import { createIdempotencyTable, DatabaseModule, Transactions, type DatabaseOptions } from '@atoll/database';
import { NestFactory } from '@nestjs/core';
import {
  Column,
  DataSource,
  Entity,
  PrimaryGeneratedColumn,
  type EntityManager,
  type MigrationInterface,
  type QueryRunner,
} from 'typeorm';
import { setup } from 'xstate';
import { ClaimKeeper } from './claim-keeper.js';
import { defineMachine, type EventOf, type StateOf, type TransientRule } from './definition.js';
import { DurableMachine } from './durable-machine.js';
import type { Outcome, Passage, StepContext } from './outcome.js';
import { createHistoryTable, MachineHistory } from './history.entity.js';
import { MachineIndexes, MachineRow, type Cause } from './machine-row.js';
import {
  addFailedIndex,
  addLanes,
  addParkedRetriedIndex,
  addRestIndexes,
  dueIndex,
  machineColumns,
} from './machine-migrations.js';
import type { Machine } from './machine-table.js';
import { MachineWorker } from './machine-worker.js';
import type { WorkerOptions } from './worker-options.js';

/** Longer than any machine takes for what a spec does at once. `Harbour.pass(10)` outlasts it. */
const backOff = { firstMs: 5_000, maxMs: 9_000 };

/** A ship's berth: asked for, dredged, in use, cleared; with an undoing of its own. */
export const berthLogic = setup({
  types: {
    meta: {} as TransientRule,
    events: {} as { type: 'DREDGED' | 'CANCEL' | 'FAILED' | 'LEAVE' | 'CLEARED' | 'UNDONE' },
  },
}).createMachine({
  id: 'berth',
  initial: 'dredging',
  states: {
    dredging: {
      meta: { deadlineMs: 60_000, givesUpBy: 'FAILED', tries: 3, backOff },
      on: { DREDGED: 'in_use', CANCEL: 'filling', FAILED: 'filling' },
    },
    in_use: { on: { LEAVE: 'clearing' } },
    clearing: {
      meta: { deadlineMs: 60_000, givesUpBy: 'FAILED', givesBack: true, backOff },
      on: { CLEARED: 'free', FAILED: 'lost' },
    },
    /** Undoes what the dredging did. */
    filling: { meta: { deadlineMs: 60_000, givesUpBy: 'FAILED' }, on: { UNDONE: 'free', FAILED: 'lost' } },
    free: { type: 'final' },
    lost: { type: 'final' },
  },
});
export type BerthState = StateOf<typeof berthLogic>;
export type BerthEvent = EventOf<typeof berthLogic>;

@Entity('berth')
@MachineIndexes('berth')
export class BerthEntity extends MachineRow {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  berthId!: string;

  @Column('text')
  ship!: string;

  /** Its lanes. */
  @Column('text', { array: true, default: () => "'{}'" })
  piers!: string[];
}

export const berths: Machine<BerthEntity, BerthState, BerthEvent> = {
  entity: BerthEntity,
  definition: defineMachine(berthLogic),
};

class Harbour1 implements MigrationInterface {
  readonly name = 'Harbour1790000000000';
  async up(runner: QueryRunner): Promise<void> {
    await createIdempotencyTable(runner, 'harbour');
    await createHistoryTable(runner);
    await runner.query(
      `CREATE TABLE berth (
        berth_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ship text NOT NULL, piers text[] NOT NULL DEFAULT '{}', ${machineColumns}
      )`,
    );
    await runner.query(dueIndex('berth'));
    await addLanes(runner, 'berth');
    await addFailedIndex(runner, 'berth');
    await addParkedRetriedIndex(runner, 'berth');
    await addRestIndexes(runner, 'berth');
    await runner.query(
      `CREATE INDEX berth_not_begun ON berth (entered_at, berth_id) WHERE state = 'dredging' AND deadline_at IS NULL`,
    );
    // What was done to the world outside, and by whom.
    await runner.query('CREATE TABLE deed (ship text NOT NULL, by_whom text NOT NULL)');
  }
  async down(): Promise<void> {}
}

type Step = (berth: BerthEntity, context: StepContext) => Promise<Outcome<BerthEntity, BerthEvent>>;

/** What a spec has it do; unless said, everything succeeds at once. */
export class BerthMachine extends DurableMachine<BerthEntity, BerthState, BerthEvent> {
  /** Steps that were begun, as `state:ship`. */
  readonly begun: string[] = [];
  readonly enteredStates: string[] = [];
  does: Partial<Record<BerthState, Step>> = {};
  onEntered: (berth: BerthEntity) => Promise<void> = () => Promise.resolve();
  protected readonly lanes = 'piers';
  override owner: string | null = null;
  override urgent: string | null = null;
  override steppedTogether: readonly BerthState[] = [];
  /** The ships of each step that was done of several berths together. */
  readonly together: string[][] = [];

  override stepAll(berths: readonly BerthEntity[], context: StepContext): Promise<Outcome<BerthEntity, BerthEvent>[]> {
    this.together.push(berths.map(({ ship }) => ship));
    return Promise.all(berths.map((berth) => this.step(berth, context)));
  }

  async step(berth: BerthEntity, context: StepContext): Promise<Outcome<BerthEntity, BerthEvent>> {
    this.begun.push(`${berth.state}:${berth.ship}`);
    const own = this.does[berth.state as BerthState];
    if (own) return own(berth, context);
    if (berth.state === 'dredging') return { event: 'DREDGED' };
    if (berth.state === 'clearing') return { event: 'CLEARED' };
    return berth.state === 'filling' ? { event: 'UNDONE' } : 'rest';
  }

  protected override entered(
    _manager: unknown,
    berth: BerthEntity,
    { from }: Passage<BerthState, BerthEvent>,
  ): Promise<void> {
    this.enteredStates.push(`${from}>${berth.state}`);
    return this.onEntered(berth);
  }
}

export const cause: Cause = { actor: 'user:harbour-master', requestId: 'request-1' };

/** What a dying worker logs. */
export const itsDeath = /the process died/;

export const crashPoints = [
  'before the step',
  'before the result is applied',
  'in the middle of applying',
  'before the commit',
] as const;
export type CrashPoint = (typeof crashPoints)[number];

/** A harbour on a database of its own. */
export class Harbour {
  machine: BerthMachine;

  private constructor(
    readonly dataSource: DataSource,
    readonly transactions: Transactions,
    readonly url: string,
    private readonly end: () => Promise<void>,
  ) {
    this.machine = new BerthMachine(dataSource, berths);
  }

  static async open(options: Partial<DatabaseOptions> = {}): Promise<Harbour> {
    // Processes that join have no use for it, and it takes them longer to load than all else.
    const { createDatabaseFrom } = await import('@atoll/testing');
    const database = await createDatabaseFrom({
      name: 'harbour',
      make: async (url) => (await Harbour.join(url)).close(),
    });
    const harbour = await Harbour.join(database.url, options);
    return new Harbour(harbour.dataSource, harbour.transactions, database.url, async () => {
      await harbour.close();
      await database.drop();
    });
  }

  /** One that is there already, in another process. */
  static async join(url: string, options: Partial<DatabaseOptions> = {}): Promise<Harbour> {
    const module = DatabaseModule.forRoot({
      schema: 'harbour',
      url,
      entities: [BerthEntity, MachineHistory],
      migrations: [Harbour1],
      ...options,
    });
    const app = await NestFactory.createApplicationContext(module, { abortOnError: false });
    return new Harbour(app.get(DataSource), app.get(Transactions), url, () => app.close());
  }

  /** As it was when it was opened, for the next spec of a file. Its workers must have stopped. */
  async clear(): Promise<void> {
    await this.dataSource.query(
      'DELETE FROM berth; DELETE FROM machine_history; DELETE FROM deed; DELETE FROM idempotency_key',
    );
    this.machine = new BerthMachine(this.dataSource, berths);
  }

  close(): Promise<void> {
    return this.end();
  }

  /**
   * Its claims outlast a freeze of the machine, and no beat comes meanwhile. A spec about claims that run out by
   * themselves, or about beats, gives it a `keeper`.
   */
  worker(
    options: Partial<WorkerOptions> = {},
    machine = this.machine,
    keeper = new ClaimKeeper(this.dataSource, 3_600_000),
  ): MachineWorker<BerthEntity, BerthState, BerthEvent> {
    return new MachineWorker(
      machine,
      this.dataSource,
      this.transactions,
      { service: 'harbour', pollMs: 20, ...options },
      keeper,
    );
  }

  /**
   * A worker whose process dies at this point: nothing of what it does then is kept but its claim. Specs allow
   * `itsDeath` to be logged.
   */
  dyingWorker(point: CrashPoint = 'before the result is applied'): MachineWorker<BerthEntity, BerthState, BerthEvent> {
    const die = () => Promise.reject(new Error('the process died'));
    const machine = new BerthMachine(this.dataSource, berths);
    machine.does = this.machine.does;
    if (point === 'before the step') machine.step = () => new Promise(() => undefined);
    if (point === 'in the middle of applying') machine.onEntered = die;
    const run = <T>(work: (manager: EntityManager) => Promise<T>): Promise<T> => {
      if (point === 'before the commit') return this.transactions.run(async (manager) => work(manager).then(die));
      return point === 'before the result is applied' ? die() : this.transactions.run(work);
    };
    // Cut off after a moment, and then dead.
    const options = { service: 'harbour', stepMs: point === 'before the step' ? 1 : 10_000 };
    const transactions = { run: point === 'before the step' ? die : run } as unknown as Transactions;
    // `Harbour.pass(20)` outlasts its claims, and no freeze of the machine does.
    return new MachineWorker(machine, this.dataSource, transactions, options, new ClaimKeeper(this.dataSource, 15_000));
  }

  async ask(ship = 'Kon-Tiki', ...piers: string[]): Promise<string> {
    return (await this.transactions.run((manager) => this.machine.insert(manager, { ship, piers }, cause))).berthId;
  }

  send(id: string, event: BerthEvent): Promise<BerthEntity | undefined> {
    return this.transactions.run((manager) => this.machine.send(manager, id, event, cause));
  }

  async read(id: string): Promise<BerthEntity> {
    return this.dataSource.manager.findOneByOrFail(BerthEntity, { berthId: id });
  }

  async eventuallyBegun(steps: number): Promise<void> {
    await eventually(() => this.machine.begun.length >= steps);
  }

  async eventuallyIn(state: BerthState, count: number): Promise<void> {
    await eventually(async () => (await this.dataSource.manager.countBy(BerthEntity, { state })) === count);
  }

  history(id: string): Promise<MachineHistory[]> {
    return this.dataSource.manager.find(MachineHistory, { where: { instance: id }, order: { id: 'ASC' } });
  }

  /** As if so much time had passed for all berths. Locks them in the order in which everything does. */
  async pass(seconds: number): Promise<void> {
    const back = `interval '${seconds} seconds'`;
    await this.dataSource.query(
      `UPDATE berth SET due_at = due_at - ${back}, parked_until = parked_until - ${back}, deadline_at = deadline_at - ${back},
         claimed_until = claimed_until - ${back}
       WHERE berth_id IN (SELECT berth_id FROM berth ORDER BY berth_id FOR NO KEY UPDATE)`,
    );
  }
}

export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let pauseMs = 5; !(await holds()); pauseMs = Math.min(pauseMs * 1.4, 80)) await delay(pauseMs);
}
