import type { DynamicModule, INestMicroservice } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsIn, IsInt, IsString, Matches, Max, Min, MinLength } from 'class-validator';
import type { Wire } from '@atoll/contracts';
import { loadEnv } from './env.js';
import { observeEvents } from './event-figures.js';
import { createMetrics, startHealthServer } from './health.js';
import { createLogger, logLevels, type LogLevel } from './logger.js';
import { onShutdown } from './shutdown.js';
import { startService } from './start-service.js';
import { natsTransport, type Transport } from './transport.js';

/** The environment of every service in a process of its own. */
export class ServiceEnv {
  @Matches(/^postgres(ql)?:\/\//, { message: 'DATABASE_URL must be a postgres:// URL' })
  DATABASE_URL: string = '';

  /** Comma-separated. */
  @IsString()
  NATS_URL: string = 'nats://127.0.0.1:4222';

  /** Signs the context of every call: the same in all processes. Comma-separated while it is changed: the first signs, all are believed. */
  @MinLength(16, { message: 'ATOLL_BUS_SECRET must be at least 16 characters long' })
  ATOLL_BUS_SECRET: string = '';

  /** `/livez`, `/readyz`, `/metrics`. */
  @Type(() => Number)
  @IsInt({ message: 'HEALTH_PORT must be a port' })
  @Min(0)
  @Max(65_535)
  HEALTH_PORT: number = 8080;

  @IsString()
  HOST: string = '127.0.0.1';

  @IsIn([...logLevels])
  ATOLL_LOG_LEVEL: LogLevel = 'info';
}

/** How a service's process is made of its parts. */
export interface ServiceDefinition<Env extends ServiceEnv> {
  name: string;
  env: Wire<Env>;
  module(env: Env, transport: Transport): DynamicModule;
  /** Once it takes requests. */
  started?(app: INestMicroservice, env: Env): Promise<void>;
}

/** Runs one service in this process until it is told to stop. Ends the process with code 1 and one clear line where it cannot start. */
export async function runService<Env extends ServiceEnv>(definition: ServiceDefinition<Env>): Promise<void> {
  const { name } = definition;
  try {
    const env = loadEnv(definition.env);
    const logger = createLogger({ service: name, level: env.ATOLL_LOG_LEVEL });
    const transport = natsTransport({ servers: env.NATS_URL, name, secrets: env.ATOLL_BUS_SECRET });
    const service = await startService({ name, module: definition.module(env, transport), transport, logger });
    const checks = [...transport.checks, ...service.checks];
    const metrics = createMetrics(name);
    observeEvents(metrics, [service]);
    const health = await startHealthServer({ port: env.HEALTH_PORT, host: env.HOST, checks, metrics });
    onShutdown(logger, async () => {
      await service.stop();
      await transport.close();
      await health.close();
    });
    await definition.started?.(service.app, env);
    logger.info({ health_port: health.port }, 'ready');
  } catch (error) {
    console.error(`${name} cannot start: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
}
