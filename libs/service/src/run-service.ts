import { messageOf, rootOf } from '@atoll/errors';
import { observeEvents } from './event-figures.js';
import { requireFreePorts } from './free-port.js';
import { createMetrics, startHealthServer } from './health.js';
import { createLogger } from './logger.js';
import { ServiceEnv } from './process-env.js';
import { readSettings } from './read-settings.js';
import { listenersOf, moduleOf, type ServiceDefinition } from './service-definition.js';
import { onShutdown } from './shutdown.js';
import { observeFigures } from './service-figures.js';
import { startService } from './start-service.js';
import { natsTransport, type NatsTransportOptions } from './transport.js';
import { version } from './version.js';

/**
 * Runs one service in this process until it is told to stop. Ends the process with code 1 and one clear line where it
 * cannot start.
 */
export async function runService(definition: ServiceDefinition): Promise<void> {
  const { name } = definition;
  try {
    const [env, settings] = await readSettings([{ settings: ServiceEnv }, definition]);
    const ofHealth = { variable: 'HEALTH_PORT', port: env.HEALTH_PORT, host: env.HOST };
    await requireFreePorts([ofHealth, ...listenersOf([definition], [settings])]);
    const logger = createLogger({ service: name, level: env.ATOLL_LOG_LEVEL });
    logger.info({ version }, 'starting');
    // Until there is something to stop, a signal ends the process at once: a start may wait for its broker for ever,
    // and the first process of a container outlives a signal that it does not handle.
    let stop = (): Promise<void> => Promise.resolve();
    onShutdown(logger, () => stop());
    const transport = natsTransport({
      servers: env.NATS_URL,
      name,
      secrets: env.ATOLL_BUS_SECRET,
      stream: streamOf(env),
    });
    const { databaseUrl, ATOLL_DEADLINE_MS: deadlineMs } = env;
    const module = moduleOf(definition, { settings, databaseUrl, deadlineMs, transport });
    const service = await startService({ name, module, transport, logger });
    const checks = [...transport.checks, ...service.checks];
    const metrics = createMetrics(name);
    observeEvents(metrics, [service]);
    observeFigures(metrics, service, definition.figures);
    const health = await startHealthServer({ port: env.HEALTH_PORT, host: env.HOST, checks, metrics });
    stop = async () => {
      await service.stop();
      await transport.close();
      await health.close();
    };
    const { adminKey, adminLink } = (await definition.started?.(service.app, settings)) ?? {};
    if (adminKey) console.log(`\nAdmin key: ${adminKey}\nShown this once; it does not expire.\n`);
    if (adminLink) console.log(`\nThe operator sets a password here, within 24 hours: ${adminLink}\n`);
    logger.info({ health_port: health.port }, 'ready');
  } catch (error) {
    console.error(`${name} cannot start: ${messageOf(rootOf(error))}`);
    process.exit(1);
  }
}

function streamOf({
  ATOLL_EVENTS_MAX_MIB: maxMib,
  ATOLL_EVENTS_REPLICAS: replicas,
}: ServiceEnv): NatsTransportOptions['stream'] {
  return {
    ...(maxMib !== undefined && { maxBytes: maxMib * 1024 ** 2 }),
    ...(replicas !== undefined && { replicas: Number(replicas) }),
  };
}
