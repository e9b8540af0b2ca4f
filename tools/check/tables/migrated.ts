import { DatabaseModule } from '@atoll/database';
import type { ServiceDefinition } from '@atoll/service';
import { startPostgres } from '@atoll/testing';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { serviceDefinitions } from '../../service-definitions.js';

/** A service's tables as its migrations make them, in the schema of its name. */
export interface Migrated {
  service: ServiceDefinition;
  dataSource: DataSource;
  /** Of the server, where each service has its schema. */
  url: string;
}

/** What is wrong with the tables of one service, or with what is asked of them: a line each. */
export type TableCheck = (migrated: Migrated) => Promise<string[]>;

/**
 * Migrates an empty database to the newest state of every service, or of those that are named, and prints what the
 * checks find there.
 */
export async function checkTables(checks: readonly TableCheck[], names: readonly string[] = []): Promise<void> {
  const services = (await serviceDefinitions()).filter(({ name }) => names.length === 0 || names.includes(name));
  if (services.length === 0) throw new Error('No apps/<service>/src/service.ts exports a service.');
  const postgres = await startPostgres();
  try {
    for (const service of services) {
      const module = DatabaseModule.forRoot({
        ...service.database,
        schema: service.name,
        url: postgres.url,
        poolSize: 2,
      });
      const app = await NestFactory.createApplicationContext(module, { logger: ['error', 'warn'] });
      try {
        for (const check of checks) {
          for (const fault of await check({ service, dataSource: app.get(DataSource), url: postgres.url })) {
            console.log(fault);
            process.exitCode = 1;
          }
        }
      } finally {
        await app.close();
      }
    }
  } finally {
    await postgres.stop();
  }
}
