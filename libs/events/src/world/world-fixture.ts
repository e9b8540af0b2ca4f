import { expect } from '@jest/globals';
import { eventLog, type EventsAfter } from '@atoll/contracts';
import type { Rpc } from '@atoll/rpc';
import { allowErrors } from '@atoll/testing';
import type { INestApplicationContext } from '@nestjs/common';
import { connect } from '@nats-io/transport-node';
import { DataSource } from 'typeorm';
import type { DomainEvent } from '../courier.js';
import { eventually } from './eventually-fixture.js';
import type { RetryRules } from '../inbox.js';
import type { RecoveryRules } from '../missing-of-sequence.js';
import { PublishedEvents } from '../published-events.js';
import { defaultMaxSilenceMs } from '../relay.js';
import {
  noRecovery,
  Orders,
  specRetries,
  startShop,
  type EffectHook,
  type Script,
  type ShopService,
} from './shop-fixture.js';
import { openTcpProxy, type TcpProxy } from './tcp-proxy-fixture.js';
import type { Observer, Topology } from './topology-fixture.js';
import { wiretapped } from './wiretap-fixture.js';

export type Moment = 'beforePublish' | 'afterPublish' | 'inEffect' | 'afterTake';
export type Server = 'database' | 'broker';

/** A process of the shop, with a door to each server. Dead, it goes on by itself, but nobody can tell. */
interface ShopProcess {
  readonly services: readonly ShopService[];
  readonly apps: Map<ShopService, INestApplicationContext>;
  readonly doors: Record<Server, TcpProxy>;
  isDead: boolean;
  close(): Promise<void>;
}

interface Doom {
  moment: Moment;
  consumer: string | undefined;
  onDeath: () => void;
}

export interface Effect {
  consumer: string;
  event_id: string;
  number: number;
  request_id: string | null;
  name: string;
}

/** The shop in a topology, on an empty database and an empty stream, and whatever a spec does to it. */
export class World {
  /** What differs from `specRetries`. */
  retries: Partial<RetryRules> = {};
  recovery: RecoveryRules = noRecovery;
  maxSilenceMs = defaultMaxSilenceMs;
  /** What happens inside of effects. */
  script: Script = () => undefined;
  /** What happens before an event is handed to the courier. */
  beforePublish: (event: DomainEvent) => void = () => undefined;
  /** What happens before a delivery is taken. */
  beforeTake: (event: DomainEvent, consumer: string, freeze: () => Promise<void>) => Promise<void> | void = () =>
    undefined;
  /** Events that were handed to the courier. */
  readonly published: DomainEvent[] = [];
  /** Consumers of the deliveries that were finished, whatever came of them, by the id of the event. */
  readonly delivered = new Map<string, string[]>();
  #processes: ShopProcess[] = [];
  #doom: Doom | undefined;
  readonly #frozen: (() => void)[] = [];

  private constructor(
    private topology: Topology,
    private readonly urls: Record<Server, string>,
    readonly observer: Observer,
  ) {}

  static async open(topology: Topology, urls: Record<Server, string>): Promise<World> {
    const database = await new DataSource({ type: 'postgres', url: urls.database, poolSize: 2 }).initialize();
    const nats = await connect({ servers: urls.broker, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
    const world = new World(topology, urls, { database, nats });
    await world.reset();
    return world;
  }

  async reset(): Promise<void> {
    this.thaw();
    await this.stop();
    this.crashNoMore();
    this.script = () => undefined;
    this.retries = {};
    this.recovery = noRecovery;
    this.maxSilenceMs = defaultMaxSilenceMs;
    this.beforePublish = () => undefined;
    this.beforeTake = () => undefined;
    this.published.length = 0;
    this.delivered.clear();
    await this.emptyTables();
    await this.topology.reset(this.observer);
  }

  /** Starts each process that does not run, or only those of the given services. */
  async start(...only: ShopService[]): Promise<void> {
    const missing = this.topology.processes.filter(
      (services) => !this.#processes.some((process) => process.services === services),
    );
    for (const services of missing) {
      if (only.length === 0 || services.some((service) => only.includes(service))) await this.startProcess(services);
    }
  }

  /** Starts one more process of a service. */
  async startReplica(service: ShopService): Promise<void> {
    const services = this.topology.processes.find((together) => together.includes(service));
    if (services) await this.startProcess(services);
  }

  /** Ends the processes of the given services, or all, in good order. */
  async stop(...only: ShopService[]): Promise<void> {
    const ending = this.#processes.filter(
      ({ services }) => only.length === 0 || services.some((service) => only.includes(service)),
    );
    this.#processes = this.#processes.filter((process) => !ending.includes(process));
    await Promise.all(ending.map((process) => process.close()));
  }

  /** Ends all processes in good order and starts them by another topology, on the same database and stream. */
  async restartWith(topology: Topology): Promise<void> {
    await this.stop();
    this.topology = topology;
    await this.start();
  }

  /**
   * Lets the next process that comes to this moment, with this consumer, die there, as by SIGKILL. Resolves when it has
   * happened.
   */
  async crashAt(moment: Moment, consumer?: string): Promise<void> {
    await new Promise<void>((resolve) => (this.#doom = { moment, consumer, onDeath: resolve }));
  }

  /**
   * Places orders, and has the process die at this moment of what follows: perhaps before whoever placed them hears
   * that they were committed.
   */
  async crashDuring(moment: Moment, numbers: readonly number[]): Promise<void> {
    const crashed = this.crashAt(moment);
    await Promise.allSettled([this.orders.place(numbers)]);
    await crashed;
  }

  /** Lets each process that comes to this moment die there, until `crashNoMore`. */
  crashAlwaysAt(moment: Moment, consumer: string): void {
    const again = () => (this.#doom = { moment, consumer, onDeath: again });
    again();
  }

  crashNoMore(): void {
    this.#doom = undefined;
  }

  /** Starts the dead anew. */
  async restartDead(): Promise<void> {
    const dead = this.#processes.filter(({ isDead }) => isDead);
    this.#processes = this.#processes.filter(({ isDead }) => !isDead);
    await Promise.all(dead.map((process) => process.close()));
    await this.start();
  }

  /** Stops the first process of a service, as SIGSTOP does, until `thaw`. */
  freeze(service: ShopService): void {
    freezeProcess(this.processOf(service, 0));
  }

  /** Lets frozen processes go on. */
  thaw(): void {
    for (const { doors } of this.#processes) for (const door of Object.values(doors)) door.thaw();
    for (const goOn of this.#frozen.splice(0)) goOn();
  }

  cut(server: Server): void {
    for (const { doors } of this.#processes) doors[server].cut();
  }

  mend(server: Server): void {
    for (const { doors, isDead } of this.#processes) if (!isDead) doors[server].mend();
  }

  /** The application of a service in the first process that runs it, or in that of another replica. */
  app(service: ShopService, replica = 0): INestApplicationContext {
    const app = this.processOf(service, replica).apps.get(service);
    if (!app) throw new Error(`${service} has not started.`);
    return app;
  }

  get orders(): Orders {
    return this.app('orders').get(Orders);
  }

  async deliverAgain(event: DomainEvent): Promise<void> {
    await this.topology.deliverAgain(event, this.observer);
  }

  async effects(): Promise<Effect[]> {
    return this.observer.database.query<Effect[]>(
      'SELECT consumer, event_id, number, request_id, name FROM mail.effect ORDER BY position',
    );
  }

  /** The numbers of which a consumer has taken note, in its order. */
  async noted(consumer: string): Promise<number[]> {
    return (await this.effects()).filter((effect) => effect.consumer === consumer).map(({ number }) => number);
  }

  /** The numbers of the orders that were committed. */
  async placed(): Promise<number[]> {
    const rows = await this.observer.database.query<{ number: number }[]>(
      'SELECT number FROM orders.placed ORDER BY number',
    );
    return rows.map(({ number }) => number);
  }

  async waiting(): Promise<{ id: string; attempts: number; last_error: string | null }[]> {
    return this.observer.database.query('SELECT id, attempts, last_error FROM orders.outbox ORDER BY id');
  }

  /** Resolves when nothing waits anywhere: what has not happened by then never will. */
  async settled(): Promise<void> {
    await eventually(async () => {
      expect(await this.waiting()).toEqual([]);
      expect(await this.topology.isIdle(this.observer)).toBe(true);
    });
  }

  /** All tables but those of the migrations: to migrate anew takes longer than most specs. */
  private async emptyTables(): Promise<void> {
    const { database } = this.observer;
    const tables = await database.query<{ name: string }[]>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname IN ('orders', 'mail') AND tablename <> 'migration'`,
    );
    if (tables.length > 0) await database.query(tables.map(({ name }) => `DELETE FROM ${name}`).join('; '));
  }

  async close(): Promise<void> {
    await this.stop();
    await this.observer.database.destroy();
    await this.observer.nats.close();
  }

  private processOf(service: ShopService, replica: number): ShopProcess {
    const process = this.#processes.filter(({ services, isDead }) => services.includes(service) && !isDead)[replica];
    if (!process) throw new Error(`${service} has no replica ${replica}.`);
    return process;
  }

  private async startProcess(services: readonly ShopService[]): Promise<void> {
    const doors = { database: await openTcpProxy(this.urls.database), broker: await openTcpProxy(this.urls.broker) };
    const opened = this.topology.openCourier(doors.broker.url);
    const apps = new Map<ShopService, INestApplicationContext>();
    const process: ShopProcess = {
      services,
      apps,
      doors,
      isDead: false,
      close: async () => {
        await Promise.all([...apps.values()].map((app) => app.close()));
        await opened.close();
        await Promise.all([doors.database.close(), doors.broker.close()]);
      },
    };
    this.#processes.push(process);
    const freeze = async () => {
      freezeProcess(process);
      await new Promise<void>((resolve) => this.#frozen.push(resolve));
    };
    const tapped = wiretapped(opened.courier, {
      beforePublish: (event) => {
        this.pass(process, 'beforePublish');
        this.beforePublish(event);
      },
      afterPublish: (event) => {
        this.pass(process, 'afterPublish');
        this.published.push(event);
      },
      beforeTake: (event, consumer) => this.beforeTake(event, consumer, freeze),
      afterTake: ({ id }, consumer) => {
        this.pass(process, 'afterTake', consumer);
        this.delivered.set(id, [...(this.delivered.get(id) ?? []), consumer]);
      },
    });
    const script: EffectHook = async (payload, consumer, delivery) => {
      await this.script(payload, consumer, delivery, freeze);
      this.pass(process, 'inEffect', consumer);
    };
    for (const service of services) {
      apps.set(
        service,
        await startShop({
          service,
          courier: tapped,
          databaseUrl: doors.database.url,
          script,
          retries: { ...specRetries, ...this.retries },
          recovery: this.recovery,
          maxSilenceMs: this.maxSilenceMs,
          rpc: this.rpc,
        }),
      );
    }
  }

  /** Publishers are asked for what was lost without a broker between. */
  private readonly rpc: Pick<Rpc, 'call'> = {
    call: async <Output>({ service, subject }: { service: string; subject: string }, asked: object) => {
      expect(subject).toBe(eventLog(service).read.subject);
      const published = this.app(service as ShopService).get(PublishedEvents);
      return (await published.read(asked as EventsAfter)) as Output;
    },
  };

  /** Throws if this process is dead, or dies now. */
  private pass(process: ShopProcess, moment: Moment, consumer?: string): void {
    const doom = this.#doom;
    const isDoomed = doom?.moment === moment && (doom.consumer === undefined || doom.consumer === consumer);
    if (!process.isDead && !isDoomed) return;
    if (!process.isDead && doom) {
      this.#doom = undefined;
      process.isDead = true;
      process.doors.database.cut();
      process.doors.broker.cut();
      doom.onDeath();
    }
    allowErrors(/This process is dead\./);
    throw new Error('This process is dead.');
  }
}

function freezeProcess({ doors }: ShopProcess): void {
  for (const door of Object.values(doors)) door.freeze();
}
