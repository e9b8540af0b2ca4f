import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import type { DynamicModule } from '@nestjs/common';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger } from 'pino';
import { deletionHolders } from '@atoll/contracts';
import { requireFreeDataFolder, startEmbeddedPostgres } from '@atoll/database';
import {
  createMetrics,
  inProcessTransport,
  loadEnv,
  loadLocalSecrets,
  observeEvents,
  requireFreePort,
  startService,
  type RunningService,
  type Transport,
} from '@atoll/service';
import { BillingModule } from '../../billing/src/billing.module.js';
import { createGateway, GatewayEnv, optionsFrom } from '../../gateway/src/create-gateway.js';
import { GpuaasModule } from '../../gpuaas/src/gpuaas.module.js';
import { Administrators, TeamsModule } from '../../teams/src/teams.module.js';
import type { PlatformEnv } from './env.js';

export interface RunningPlatform {
  url: string;
  dataDir: string;
  /** The operator's key where it was made just now. */
  adminKey: string | undefined;
  /** Closes the door, lets what is inside finish, then stops services and database. */
  stop(): Promise<void>;
}

/** What a service's module is made of in this process. */
export interface ServiceParts {
  databaseUrl: string;
  keyPepper: string;
  /** ISO 4217. */
  currency: string;
  /** Where metrics are read; simulated without. */
  prometheusUrl?: string;
  rpc: Transport['rpc'];
  courier: Transport['courier'];
}

/** The services of the platform: a line each. */
export const services: Record<string, (parts: ServiceParts) => DynamicModule> = {
  teams: (parts) => TeamsModule.register({ ...parts, deletionHolders }),
  billing: (parts) => BillingModule.register(parts),
  gpuaas: (parts) => GpuaasModule.register(parts),
};

type Undo = () => Promise<void>;

/** Starts everything in this process: the database, each service as an application of its own, and the gateway before them. */
export async function startPlatform(env: PlatformEnv, logger: Logger): Promise<RunningPlatform> {
  const dataDir = resolve(env.ATOLL_DATA_DIR);
  const undo: Undo[] = [];
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    requireFreeDataFolder(dataDir);
    await requireFreePort(env.PORT, env.HOST, 'npm start');
    const keyPepper = env.ATOLL_KEY_PEPPER ?? loadLocalSecrets(dataDir).keyPepper;
    const databaseUrl = env.DATABASE_URL ?? (await startDatabase(dataDir, logger, undo));
    const transport = inProcessTransport(Object.keys(services));
    const parts: ServiceParts = {
      databaseUrl,
      keyPepper,
      currency: env.ATOLL_CURRENCY,
      ...(env.ATOLL_PROMETHEUS_URL !== undefined && { prometheusUrl: env.ATOLL_PROMETHEUS_URL }),
      rpc: transport.rpc,
      courier: transport.courier,
    };
    const running: RunningService[] = [];
    for (const [name, moduleOf] of Object.entries(services)) {
      const service = await startService({ name, module: moduleOf(parts), transport, logger });
      running.push(service);
      undo.push(() => service.stop());
    }
    const metrics = createMetrics('atoll');
    observeEvents(metrics, running);
    const gateway = await createGateway({
      ...optionsFrom(loadEnv(GatewayEnv)),
      rpc: transport.rpc,
      keyPepper,
      logger,
      metrics,
      readinessChecks: running.flatMap(({ checks }) => checks),
    });
    undo.push(() => gateway.close());
    await gateway.listen(env.PORT, env.HOST);
    // Last of all: a key that is made now is shown once, and not lost to anything that fails after it.
    const adminKey = await ensureOperator(running, env);
    return { url: urlOf(gateway, env.HOST), dataDir, adminKey, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Gives back the operator's key where it was made just now. */
async function ensureOperator(running: readonly RunningService[], env: PlatformEnv): Promise<string | undefined> {
  const teams = running.find(({ name }) => name === 'teams');
  const operator = await teams?.app.get(Administrators).ensure({
    email: env.ATOLL_ADMIN_EMAIL,
    ...(env.ATOLL_ADMIN_KEY !== undefined && { apiKey: env.ATOLL_ADMIN_KEY }),
  });
  return operator?.apiKey;
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
  const shown = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${shown.includes(':') ? `[${shown}]` : shown}:${port}`;
}
