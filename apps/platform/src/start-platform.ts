import type { AddressInfo } from 'node:net';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger } from 'pino';
import { requireDatabase, startEmbeddedPostgres } from '@atoll/database';
import {
  createMetrics,
  inProcessTransport,
  moduleOf,
  observeEvents,
  observeFigures,
  shownHost,
  startService,
  type FirstStart,
  type RunningService,
  type Transport,
} from '@atoll/service';
import { createGateway, listenCompat, optionsFrom } from '../../gateway/src/create-gateway.js';
import type { ConfiguredService, PlatformSettings } from './read-platform.js';
import { services } from './services.js';

export interface RunningPlatform {
  url: string;
  /** `ATOLL_PUBLIC_URL`: where people reach it. */
  publicUrl: string;
  dataDir: string;
  /** The operator's key where it was made just now. */
  adminKey: string | undefined;
  /** Whether the operator's key is the one in `ATOLL_ADMIN_KEY`. */
  acceptsBroughtKey: boolean;
  /** Where the operator sets a first password. */
  adminLink: string | undefined;
  /** Closes the door, lets what is inside finish, then stops services and database. */
  stop(): Promise<void>;
}

type Undo = () => Promise<void>;

/**
 * Starts everything in this process: the database, each service as an application of its own, and the gateway before
 * them. Undefined where `stopping` was aborted meanwhile: the start goes no further then, and what has been started is
 * stopped.
 */
export async function startPlatform(
  { env, dataDir, port, gatewayEnv, configured }: PlatformSettings,
  logger: Logger,
  stopping: AbortSignal,
): Promise<RunningPlatform | undefined> {
  const undo: Undo[] = [];
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const names = services.map(({ name }) => name);
    if (env.databaseUrl !== undefined)
      await requireDatabase({ url: env.databaseUrl, stopping }, names, (line) => logger.warn(line));
    const databaseUrl = env.databaseUrl ?? (await startDatabase(dataDir, logger, undo));
    const transport = inProcessTransport(names);
    const running = await startServices({
      configured,
      deadlineMs: env.ATOLL_DEADLINE_MS,
      databaseUrl,
      transport,
      logger,
      stopping,
      undo,
    });
    stopping.throwIfAborted();
    const gateway = await openGateway(
      { ...optionsFrom(gatewayEnv), deadlineMs: env.ATOLL_DEADLINE_MS },
      transport,
      running,
      logger,
    );
    let compat: NestFastifyApplication | undefined;
    undo.push(async () => void (await Promise.all([gateway.close(), compat?.close()])));
    await gateway.listen(port, env.HOST);
    const { ATOLL_COMPAT_PORT: compatPort } = gatewayEnv;
    if (compatPort !== undefined) compat = await listenCompat(gateway, { port: compatPort, host: env.HOST });
    stopping.throwIfAborted();
    // Last of all: a key that is made now is shown once, and not lost to anything that fails after it.
    const { adminKey, acceptsBroughtKey = false, adminLink } = await firstStart(running, configured);
    const url = urlOf(gateway, env.HOST);
    return { url, publicUrl: gatewayEnv.publicUrl, dataDir, adminKey, acceptsBroughtKey, adminLink, stop };
  } catch (error) {
    await stop();
    if (stopping.aborted && error === stopping.reason) return undefined;
    throw error;
  }
}

interface Start {
  configured: readonly ConfiguredService[];
  deadlineMs: number;
  databaseUrl: string;
  transport: Transport;
  logger: Logger;
  stopping: AbortSignal;
  undo: Undo[];
}

/**
 * Starts one service after the other, each as an application of its own. Throws where `stopping` was aborted meanwhile.
 */
async function startServices({ configured, transport, logger, undo, ...shared }: Start): Promise<RunningService[]> {
  const running: RunningService[] = [];
  for (const { service, settings } of configured) {
    shared.stopping.throwIfAborted();
    const module = moduleOf(service, { settings, transport, ...shared });
    const started = await startService({ name: service.name, module, transport, logger });
    running.push(started);
    undo.push(() => started.stop());
  }
  return running;
}

function openGateway(
  options: ReturnType<typeof optionsFrom> & { deadlineMs: number },
  transport: Transport,
  running: readonly RunningService[],
  logger: Logger,
): Promise<NestFastifyApplication> {
  const metrics = createMetrics('atoll');
  observeEvents(metrics, running);
  for (const [at, service] of running.entries()) observeFigures(metrics, service, services[at]?.figures);
  return createGateway({
    ...options,
    rpc: transport.rpc,
    logger,
    metrics,
    readinessChecks: running.flatMap(({ checks }) => checks),
  });
}

/** First actions once the services accept requests. Returns what to show to the operator. */
async function firstStart(
  running: readonly RunningService[],
  configured: readonly ConfiguredService[],
): Promise<FirstStart> {
  let shown: FirstStart = {};
  for (const [at, { service, settings }] of configured.entries()) {
    const app = running[at]?.app;
    const started = app && (await service.started?.(app, settings));
    shown = { ...shown, ...started };
  }
  return shown;
}

async function startDatabase(dataDir: string, logger: Logger, undo: Undo[]): Promise<string> {
  const postgres = await startEmbeddedPostgres({
    dataDir,
    onNotice: (notice) => logger.info(notice),
    onExit: (reason) => {
      // Without its database the platform can do nothing; whoever supervises it starts both again.
      logger.fatal({ reason }, 'PostgreSQL ended');
      process.exit(1);
    },
  });
  undo.push(() => postgres.stop());
  return postgres.url;
}

function urlOf(gateway: NestFastifyApplication, host: string): string {
  const { port } = gateway.getHttpServer().address() as AddressInfo;
  return `http://${shownHost(host)}:${port}`;
}
