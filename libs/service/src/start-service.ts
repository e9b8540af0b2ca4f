import type { DynamicModule, INestMicroservice } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Logger } from 'pino';
import { DataSource } from 'typeorm';
import { DatabaseStatus, handleOnce, openConnections, toAppError } from '@atoll/database';
import { isAppError, type AppError } from '@atoll/errors';
import { DeadLetters, Events, Outbox } from '@atoll/events';
import type { ReadinessCheck } from './health.js';
import { NestLogger } from './logger.js';
import type { Transport } from './transport.js';

/** A service that takes requests. */
export interface RunningService {
  readonly name: string;
  /** To reach what the service's module exports. */
  readonly app: INestMicroservice;
  readonly events: Events;
  readonly outbox: Outbox;
  readonly deadLetters: DeadLetters;
  readonly checks: readonly ReadinessCheck[];
  /** Takes no new requests, answers those in flight, then closes what the service holds. */
  stop(): Promise<void>;
}

/**
 * Boots a service's module as a Nest application of its own and subscribes its operations. Throws when it cannot start.
 */
export async function startService(options: {
  name: string;
  module: DynamicModule;
  transport: Transport;
  logger: Logger;
}): Promise<RunningService> {
  const { name, module, transport, logger } = options;
  const server = transport.server({ service: name, mapError: asUnavailable, handleOnce });
  const app = await NestFactory.createMicroservice(module, {
    strategy: server,
    logger: new NestLogger(logger),
    abortOnError: false,
  });
  await openConnections(app.get(DataSource, { strict: false }));
  await app.listen();
  const database = app.get(DatabaseStatus, { strict: false });
  const events = app.get(Events, { strict: false });
  let draining = false;
  return {
    name,
    app,
    events,
    outbox: app.get(Outbox, { strict: false }),
    deadLetters: app.get(DeadLetters, { strict: false }),
    checks: [
      { name: `${name} requests`, check: () => (draining ? 'draining' : (server.readiness().reason ?? null)) },
      { name: `${name} database`, check: () => database.fault() },
      { name: `${name} events`, check: () => events.status().reason ?? null },
    ],
    stop: async () => {
      draining = true;
      await server.drain();
      await app.close();
    },
  };
}

/** A database that fails is no bug of the service: its callers may come again. */
function asUnavailable(error: unknown): AppError | undefined {
  const mapped = toAppError(error);
  return isAppError(mapped) ? mapped : undefined;
}
