import { messageOf } from '@atoll/errors';
import {
  createLogger,
  createMetrics,
  natsTransport,
  onShutdown,
  readSettings,
  requireFreePorts,
  version,
} from '@atoll/service';
import { createGateway, gatewayListeners, gatewaySettings, listenCompat, optionsFrom } from './create-gateway.js';

try {
  const [env, httpEnv, gatewayEnv] = await readSettings(gatewaySettings);
  const { PORT: port, HOST: host } = httpEnv;
  await requireFreePorts(gatewayListeners(httpEnv, gatewayEnv));
  const logger = createLogger({ service: 'gateway', level: env.ATOLL_LOG_LEVEL });
  logger.info({ version }, 'starting');
  // A start that waits for its broker ends at once by a signal, as that of a service does.
  let stop = (): Promise<unknown> => Promise.resolve();
  onShutdown(logger, () => stop());
  const transport = natsTransport({ servers: env.NATS_URL, name: 'gateway', secrets: env.ATOLL_BUS_SECRET });
  const gateway = await createGateway({
    ...optionsFrom(gatewayEnv),
    rpc: transport.rpc,
    deadlineMs: env.ATOLL_DEADLINE_MS,
    logger,
    metrics: createMetrics('gateway'),
    readinessChecks: transport.checks,
  });
  const { ATOLL_COMPAT_PORT: compatPort } = gatewayEnv;
  const compat = compatPort === undefined ? undefined : await listenCompat(gateway, { port: compatPort, host });
  stop = async () => {
    await Promise.all([gateway.close(), compat?.close()]);
    await transport.close();
  };
  await gateway.listen(port, host);
  logger.info({ port, host, ...(compatPort !== undefined && { compat_port: compatPort }) }, 'ready');
} catch (error) {
  console.error(`gateway cannot start: ${messageOf(error)}`);
  process.exit(1);
}
