import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { Logger } from 'pino';
import { startEmbeddedPostgres } from '@atoll/database';
import {
  createMetrics,
  inProcessTransport,
  loadEnv,
  loadLocalSecrets,
  startService,
  type RunningService,
  type Transport,
} from '@atoll/service';
import { createGateway, GatewayEnv, optionsFrom } from '../../gateway/src/create-gateway.js';
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

/** The services of the platform, by the names that contracts know. */
export const serviceNames = ['teams'];

type Undo = () => Promise<void>;

/** Starts everything in this process: the database, each service as an application of its own, and the gateway before them. */
export async function startPlatform(env: PlatformEnv, logger: Logger): Promise<RunningPlatform> {
  const dataDir = resolve(env.ATOLL_DATA_DIR);
  const undo: Undo[] = [];
  const stop = async () => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    const secrets = loadLocalSecrets(dataDir);
    const keyPepper = env.ATOLL_KEY_PEPPER ?? secrets.keyPepper;
    const databaseUrl = env.DATABASE_URL ?? (await startDatabase(dataDir, logger, undo));
    const transport = inProcessTransport(serviceNames);
    const teams = await startService({
      name: 'teams',
      module: TeamsModule.register({ databaseUrl, keyPepper, rpc: transport.rpc, courier: transport.courier }),
      transport,
      logger: logger.child({ part: 'teams' }),
    });
    undo.push(() => teams.stop());
    const admin = await teams.app.get(Administrators).ensure({
      email: env.ATOLL_ADMIN_EMAIL,
      ...(env.ATOLL_ADMIN_KEY !== undefined && { apiKey: env.ATOLL_ADMIN_KEY }),
    });
    const gateway = await openGateway({ env, logger, transport, keyPepper, services: [teams] });
    undo.push(() => gateway.close());
    return { url: urlOf(gateway, env.HOST), dataDir, adminKey: admin.apiKey, stop };
  } catch (error) {
    await stop();
    throw error;
  }
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

async function openGateway(parts: {
  env: PlatformEnv;
  logger: Logger;
  transport: Transport;
  keyPepper: string;
  services: RunningService[];
}): Promise<NestFastifyApplication> {
  const { env, logger, transport, keyPepper, services } = parts;
  const gateway = await createGateway({
    ...optionsFrom(loadEnv(GatewayEnv)),
    rpc: transport.rpc,
    keyPepper,
    logger: logger.child({ part: 'gateway' }),
    metrics: createMetrics('atoll'),
    readinessChecks: services.flatMap(({ checks }) => checks),
  });
  try {
    await gateway.listen(env.PORT, env.HOST);
  } catch (error) {
    await gateway.close();
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new Error(`port ${env.PORT} is taken by another program. Choose another: PORT=3001 npm start`);
  }
  return gateway;
}

function urlOf(gateway: NestFastifyApplication, host: string): string {
  const { port } = gateway.getHttpServer().address() as AddressInfo;
  const shown = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${shown.includes(':') ? `[${shown}]` : shown}:${port}`;
}
