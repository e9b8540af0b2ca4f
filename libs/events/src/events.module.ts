import { newId, Transactions } from '@atoll/database';
import { Rpc } from '@atoll/rpc';
import { Module, type DynamicModule } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { CommitSignal } from './commit-signal.js';
import type { Courier } from './courier.js';
import { DeadLetterDesk, deadLettersController } from './dead-letter-desk.js';
import { DeadLetters } from './dead-letters.js';
import { EventConsumers } from './event-consumers.js';
import { askPublisher } from './event-source.js';
import { Events } from './events.js';
import { defaultRetryRules, Inbox, type RetryRules } from './inbox.js';
import { defaultRecoveryRules } from './missing-events.js';
import type { RecoveryRules } from './missing-of-sequence.js';
import { Outbox } from './outbox.js';
import { PublishedEvents, publishedEventsController } from './published-events.js';
import { defaultMaxSilenceMs } from './relay.js';

export interface EventsOptions {
  /** The service whose outbox and consumers these are. */
  service: string;
  /** The same object for all services of one process, where it delivers in process. */
  courier: Courier;
  /** Of effects that fail. 5 tries after 0.5, 2, 8 and 32 s unless given. */
  retries?: Partial<RetryRules>;
  /**
   * When events are looked for that never came: every 15 s, 5 s after they were published, unless given. Their
   * publishers are asked for them by `Rpc`; nobody in an application without it.
   */
  recovery?: Partial<RecoveryRules>;
  /**
   * How long the process that relays may send nothing to PostgreSQL, as one that is frozen, until another replica
   * relays: 20 s unless given.
   */
  maxSilenceMs?: number;
}

/**
 * A service's events: the outbox, its relay, and the consumers found among the providers. Needs `DatabaseModule` with
 * `eventEntities`, and the tables of `createEventTables`. The relay keeps two connections of the pool for itself.
 */
@Module({})
export class EventsModule {
  static forRoot(options: EventsOptions): DynamicModule {
    const { service, courier, retries, recovery, maxSilenceMs = defaultMaxSilenceMs } = options;
    const processId = newId();
    return {
      module: EventsModule,
      global: true,
      imports: [DiscoveryModule],
      controllers: [publishedEventsController(service), deadLettersController(service)],
      providers: [
        PublishedEvents,
        CommitSignal,
        Outbox,
        DeadLetters,
        DeadLetterDesk,
        EventConsumers,
        {
          provide: Inbox,
          useFactory: (transactions: Transactions, dataSource: DataSource) =>
            new Inbox(transactions, dataSource, { ...defaultRetryRules, ...retries }, processId),
          inject: [Transactions, DataSource],
        },
        {
          provide: Events,
          useFactory: (
            consumers: EventConsumers,
            inbox: Inbox,
            dataSource: DataSource,
            signal: CommitSignal,
            letters: DeadLetters,
            rpc?: Rpc,
          ) => {
            const surroundings = {
              service,
              processId,
              courier,
              recovery: { ...defaultRecoveryRules, ...recovery },
              maxSilenceMs,
              source: rpc && askPublisher(rpc, service),
            };
            return new Events(surroundings, consumers, inbox, dataSource, signal, letters);
          },
          inject: [EventConsumers, Inbox, DataSource, CommitSignal, DeadLetters, { token: Rpc, optional: true }],
        },
      ],
      exports: [Outbox, DeadLetters, Events, PublishedEvents],
    };
  }
}
