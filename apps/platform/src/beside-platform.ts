import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { runningPostgresUrl, startEmbeddedPostgres } from '@atoll/database';
import { createLogger, inProcessTransport, loadEnv, loadLocalSecrets, NestLogger } from '@atoll/service';
import { PlatformEnv } from './env.js';
import { services } from './start-platform.js';

/**
 * Runs a command of the operator with a service's module, beside a running platform or without one. Where the services run apart it takes their
 * `DATABASE_URL` and `ATOLL_KEY_PEPPER`. Ends the process with code 1 and one clear line where the command fails.
 */
export async function besidePlatform(
  command: (open: (service: string) => Promise<INestApplicationContext>) => Promise<void>,
): Promise<void> {
  const undo: (() => Promise<void>)[] = [];
  try {
    const env = loadEnv(PlatformEnv);
    const dataDir = resolve(env.ATOLL_DATA_DIR);
    const databaseUrl = env.DATABASE_URL ?? (await databaseOf(dataDir, undo));
    const keyPepper = env.ATOLL_KEY_PEPPER ?? loadLocalSecrets(dataDir).keyPepper;
    // A courier that waits for somebody who never comes: events are the running platform's to deliver.
    const { rpc, courier } = inProcessTransport([...Object.keys(services), 'nobody']);
    const logger = new NestLogger(createLogger({ service: 'command', level: 'error' }));
    await command(async (name) => {
      const moduleOf = services[name];
      if (!moduleOf) throw new Error(`there is no service ${name}; there is: ${Object.keys(services).join(', ')}`);
      const module = moduleOf({ databaseUrl, keyPepper, currency: env.ATOLL_CURRENCY, rpc, courier });
      const app = await NestFactory.createApplicationContext(module, { logger, abortOnError: false });
      undo.push(() => app.close());
      return app;
    });
  } catch (error) {
    console.error(`Nothing was done: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
  for (const step of undo.reverse()) await step();
}

async function databaseOf(dataDir: string, undo: (() => Promise<void>)[]): Promise<string> {
  if (!existsSync(join(dataDir, 'postgres'))) throw new Error(`${dataDir} holds no platform. Say where it is by ATOLL_DATA_DIR.`);
  const running = runningPostgresUrl(dataDir);
  if (running !== undefined) return running;
  const postgres = await startEmbeddedPostgres({ dataDir });
  undo.push(() => postgres.stop());
  return postgres.url;
}
