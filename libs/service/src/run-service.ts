import type { DynamicModule, INestMicroservice } from '@nestjs/common';
import type { Wire } from '@atoll/contracts';
import { loadEnv } from './env.js';
import { observeEvents } from './event-figures.js';
import { createMetrics, startHealthServer } from './health.js';
import { createLogger } from './logger.js';
import type { ServiceEnv } from './process-env.js';
import { onShutdown } from './shutdown.js';
import { startService } from './start-service.js';
import { natsTransport, type Transport } from './transport.js';

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
