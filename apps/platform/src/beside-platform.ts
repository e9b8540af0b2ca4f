import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { runningPostgresUrl, startEmbeddedPostgres } from '@atoll/database';
import { createLogger, inProcessTransport, loadEnv, moduleOf, NestLogger } from '@atoll/service';
import { PlatformEnv, settingsSource } from './env.js';
import { services } from './services.js';

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
    const source = settingsSource(dataDir);
    // A courier that waits for somebody who never comes: events are the running platform's to deliver.
    const names = services.map(({ name }) => name);
    const transport = inProcessTransport([...names, 'nobody']);
    const logger = new NestLogger(createLogger({ service: 'command', level: 'error' }));
    await command(async (name) => {
      const definition = services.find((service) => service.name === name);
      if (!definition) throw new Error(`there is no service ${name}; there is: ${names.join(', ')}`);
      const module = moduleOf(definition, { settings: loadEnv(definition.settings, source), databaseUrl, transport });
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
