import { randomUUID } from 'node:crypto';
import type { CallContext, EventType, Operation, TeamRole, UserCaller } from '@atoll/contracts';
import { newId, openDataSource, toAppError } from '@atoll/database';
import { isAppError, type AppError } from '@atoll/errors';
import { InProcessCourier, type Courier, type DomainEvent } from '@atoll/events';
import { InProcessBus, InProcessStrategy, Rpc, RpcModule } from '@atoll/rpc';
import { moduleOf, type ServiceDefinition } from '@atoll/service';
import type { INestMicroservice, Provider, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { createDatabaseFrom, type TestDatabase } from './postgres.js';
import { timeoutFactor } from './timeout-factor.js';

export interface ServiceUnderTestOptions<Settings extends object> {
  readonly settings?: Partial<Settings>;
  /** In place of providers of the service's module, such as drivers. */
  readonly providers?: readonly Provider[];
  /** The bus between the service and its neighbours; fakes may register operations on it before the service starts. */
  readonly bus?: InProcessBus;
  /** Names of the events that `events` collects. */
  readonly listensTo?: readonly string[];
  /** Of which this is to be another replica: it has the same rows, and its own bus and events. */
  readonly replicaOf?: BareServiceUnderTest | undefined;
}

/** A caller, and with it the rest of a context that it does not matter for. */
export function contextOf(
  caller: Partial<UserCaller>,
  idempotency?: { key: string; fingerprint: string },
): CallContext {
  const credential = { kind: 'key', id: newId() } as const;
  const nobody = {
    userId: newId(),
    credential,
    scope: 'user',
    platformAdmin: false,
    timezone: 'UTC',
    teams: [],
  } as const;
  return {
    requestId: randomUUID(),
    deadlineAtMs: Date.now() + 30_000 * timeoutFactor,
    caller: { kind: 'user', ...nobody, ...caller },
    ...(idempotency && { idempotency: { ...idempotency, scope: 'specs' } }),
  };
}

/** The platform's operator. */
export const operator: Partial<UserCaller> = { platformAdmin: true };

/** A member of one team, by a key of that membership; in UTC unless said. */
export function memberOf(teamId: string, role: TeamRole = 'team_owner', timezone = 'UTC'): Partial<UserCaller> {
  return { platformAdmin: false, scope: 'membership', timezone, teams: [{ teamId, role }] };
}

/** What a fixture is made of. */
export interface StartedService {
  readonly app: INestMicroservice;
  /** Of the operations that it serves. */
  readonly subjects: readonly string[];
  readonly events: readonly DomainEvent[];
  readonly others: ReturnType<Courier['join']>;
  readonly database: TestDatabase;
}

/** Runs the migrations of a service. */
async function migrate({ name, database }: Pick<ServiceDefinition, 'name' | 'database'>, url: string): Promise<void> {
  const dataSource = await openDataSource({ ...database, schema: name, url, poolSize: 2 });
  await dataSource.destroy();
}

/** However busy the machine is, no transaction is ended because the service is slow to go on with it. */
function patient(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.searchParams.set('idle_in_transaction_session_timeout', String(20_000 * timeoutFactor));
  return url.href;
}

/** Starts a service for a fixture of its own, which extends `ServiceUnderTest` or `BareServiceUnderTest`. */
export async function startServiceUnderTest<Settings extends object>(
  definition: ServiceDefinition<Settings>,
  options: ServiceUnderTestOptions<Settings> = {},
): Promise<StartedService> {
  const { name } = definition;
  const { bus = new InProcessBus(), listensTo = [], providers = [], replicaOf } = options;
  const template = { name: name.replaceAll('-', '_'), make: (url: string) => migrate(definition, url) };
  const database = replicaOf?.database ?? (await createDatabaseFrom(template));
  const courier = new InProcessCourier({ services: [name, 'specs'] });
  const settings = Object.assign(new definition.settings(), options.settings);
  const transport = { rpc: RpcModule.forMemory({ bus }), courier };
  const module = moduleOf(definition, { settings, databaseUrl: patient(database.url), transport, providers });
  const strategy = new InProcessStrategy({ service: name, bus, mapError: asAppError });
  const app = await NestFactory.createMicroservice(module, { strategy, abortOnError: false });
  await app.listen();
  const events: DomainEvent[] = [];
  const take = (event: DomainEvent): Promise<'done'> => {
    // Events may come twice.
    if (!events.some(({ id }) => id === event.id)) events.push(event);
    return Promise.resolve('done');
  };
  const subjects = [...strategy.getHandlers().keys()];
  const consumers = listensTo.length > 0 ? [{ name: 'specs', eventNames: listensTo, take }] : [];
  return { app, subjects, events, others: courier.join('specs', consumers, () => undefined), database };
}

/**
 * A service on a database of its own and on an in-process bus, with specs in the place of the gateway and of the other
 * services.
 */
export class BareServiceUnderTest {
  readonly app: INestMicroservice;
  /** The events of `listensTo` that the service has published, each once. */
  readonly events: readonly DomainEvent[];
  /** Of the operations that the service serves. */
  readonly subjects: readonly string[];

  constructor(private readonly started: StartedService) {
    ({ app: this.app, events: this.events, subjects: this.subjects } = started);
  }

  /** For its replicas, which leave it to this one. */
  get database(): TestDatabase {
    return { url: this.started.database.url, drop: () => Promise.resolve() };
  }

  async stop(): Promise<void> {
    await this.app.close();
    await this.started.database.drop();
  }

  get<T>(type: Type<T> | (abstract new () => T)): T {
    return this.app.get<T>(type, { strict: false });
  }

  ask<I extends object, O extends object>(operation: Operation<I, O>, input: I, context: CallContext): Promise<O> {
    return this.get(Rpc).call(operation, input, context);
  }

  query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.get(DataSource).query<Row[]>(sql, values);
  }

  /** Hands the service an event as its publisher would, its owner unless given, and waits until it has taken it. */
  async tell<P extends object>(type: EventType<P>, payload: P, publisher = type.service): Promise<void> {
    const event = { id: newId(), name: type.name, payload, occurredAt: new Date().toISOString(), publisher };
    const outcome = await this.started.others.publish(event, 1);
    if (outcome !== 'done') throw new Error(`${type.name} was not taken: ${outcome.reason}`);
  }
}

/** As `BareServiceUnderTest`, called in the name of a caller that is made up, the operator unless said. */
export class ServiceUnderTest extends BareServiceUnderTest {
  call<I extends object, O extends object>(
    operation: Operation<I, O>,
    input: NoInfer<I>,
    caller: Partial<UserCaller> = operator,
    idempotency?: { key: string; fingerprint: string },
  ): Promise<O> {
    return this.ask(operation, input, contextOf(caller, idempotency));
  }
}

function asAppError(error: unknown): AppError | undefined {
  const mapped = toAppError(error);
  return isAppError(mapped) ? mapped : undefined;
}
