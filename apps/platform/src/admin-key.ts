import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { NestFactory } from '@nestjs/core';
import { runningPostgresUrl, startEmbeddedPostgres } from '@atoll/database';
import { createLogger, inProcessTransport, loadEnv, loadLocalSecrets, NestLogger } from '@atoll/service';
import { Administrators, TeamsModule } from '../../teams/src/teams.module.js';
import { PlatformEnv } from './env.js';
import { services } from './start-platform.js';

/**
 * `npm run admin-key`: a new key for the operator who lost the old one, made at the machine. Works beside a running platform, which takes
 * up to 5 s to forget the old key. Where the services run apart, it takes their `DATABASE_URL` and `ATOLL_KEY_PEPPER`.
 */
try {
  const env = loadEnv(PlatformEnv);
  const dataDir = resolve(env.ATOLL_DATA_DIR);
  if (env.DATABASE_URL === undefined && !existsSync(join(dataDir, 'postgres'))) {
    throw new Error(`${dataDir} holds no platform. Say where it is: ATOLL_DATA_DIR=… npm run admin-key`);
  }
  const running = env.DATABASE_URL ?? runningPostgresUrl(dataDir);
  const postgres = running === undefined ? await startEmbeddedPostgres({ dataDir }) : null;
  // A courier that waits for somebody who never comes: the events of this change are the running platform's to deliver.
  const { rpc, courier } = inProcessTransport([...Object.keys(services), 'nobody']);
  const app = await NestFactory.createApplicationContext(
    TeamsModule.register({
      databaseUrl: running ?? postgres?.url ?? '',
      keyPepper: env.ATOLL_KEY_PEPPER ?? loadLocalSecrets(dataDir).keyPepper,
      rpc,
      courier,
    }),
    { logger: new NestLogger(createLogger({ service: 'admin-key', level: 'warn' })), abortOnError: false },
  );
  const key = await app.get(Administrators).newKey();
  await app.close();
  await postgres?.stop();
  console.log(`\nAdmin key: ${key}\nShown this once; it does not expire. The earlier one no longer works.\n`);
} catch (error) {
  console.error(`No key was made: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
