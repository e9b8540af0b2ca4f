import type { DynamicModule, INestMicroservice, Provider, Type } from '@nestjs/common';
import type { Wire } from '@atoll/contracts';
import { DatabaseModule, type DatabaseOptions } from '@atoll/database';
import { EventsModule } from '@atoll/events';
import type { Listener } from './free-port.js';
import type { SealedColumn } from './sealed-columns.js';
import type { ServiceFigure } from './service-figures.js';
import type { Transport } from './transport.js';

/** What a first start has to show to a person, once and past the logs, which never hold a key. */
export interface FirstStart {
  readonly adminKey?: string;
  /** Whether the operator's key is the one in `ATOLL_ADMIN_KEY`. */
  readonly acceptsBroughtKey?: boolean;
  /** A one-time link by which the operator sets a password. */
  readonly adminLink?: string;
}

/**
 * A service as a value, exported by `apps/<name>/src/service.ts`: by it the service is started in a process of its own,
 * in one process with the others, and under test; operator commands, compose and the checks follow from it too.
 */
export interface ServiceDefinition<Settings extends object = object> {
  /** Its queue group on the bus, its schema in PostgreSQL, and the first word of its operations and events. */
  readonly name: string;
  /** What an operator can set, by `@Variable`, with defaults and validators. Loaded once, injectable by this class. */
  readonly settings: Wire<Settings>;
  /**
   * What the validators of one setting cannot tell: settings that need each other, files, addresses of the machine.
   * All run before anything is started. Each throws an Error whose sentence names the variables at fault.
   */
  checks?(this: void, settings: Settings): readonly (() => unknown)[];
  /** Where it listens at ports that the operator set, for a check before anything is started that all can be opened. */
  listeners?(this: void, settings: Settings): readonly Listener[];
  /** Of the schema `name`. */
  readonly database: Pick<DatabaseOptions, 'entities' | 'migrations' | 'poolSize' | 'backgroundPoolSize' | 'timeouts'>;
  /** Its features. The database, events and the way to other services come with the definition. */
  readonly module: Type;
  /** Where its rows hold sealed secrets: `npm run reseal` seals them again when the key is replaced. */
  readonly sealed?: readonly SealedColumn[];
  /** Metrics of this service, in addition to those of every service. */
  readonly figures?: readonly ServiceFigure[];
  /** Once it takes requests. */
  started?(app: INestMicroservice, settings: Settings): Promise<FirstStart>;
}

/** Where a service runs. */
export interface ServiceSurroundings<Settings extends object> {
  readonly settings: Settings;
  readonly databaseUrl: string;
  /** How long a request may take at most: see `DatabaseOptions`. */
  readonly deadlineMs?: number;
  /** Ends a start that waits for others: see `DatabaseOptions`. */
  readonly stopping?: AbortSignal;
  readonly transport: Pick<Transport, 'rpc' | 'courier'>;
  /** In place of providers of its module: for specs. */
  readonly providers?: readonly Provider[];
}

/** Where services listen; `settings` has those of each, in the same order. */
export function listenersOf(services: readonly ServiceDefinition[], settings: readonly unknown[]): Listener[] {
  return services.flatMap((service, at) => service.listeners?.(settings[at] as object) ?? []);
}

/** The value as it stands; constrains its type. */
export function defineService<Settings extends object>(
  definition: ServiceDefinition<Settings>,
): ServiceDefinition<Settings> {
  return definition;
}

/** The module of a service with everything it stands on. */
export function moduleOf<Settings extends object>(
  { name, settings: settingsClass, database, module }: ServiceDefinition<Settings>,
  { settings, databaseUrl, deadlineMs, stopping, transport, providers = [] }: ServiceSurroundings<Settings>,
): DynamicModule {
  return {
    module,
    imports: [
      DatabaseModule.forRoot({
        ...database,
        schema: name,
        url: databaseUrl,
        ...(deadlineMs && { deadlineMs }),
        ...(stopping && { stopping }),
      }),
      EventsModule.forRoot({ service: name, courier: transport.courier }),
      transport.rpc,
    ],
    providers: [{ provide: settingsClass, useValue: settings }, ...providers],
  };
}
