import { DatabaseModule, migrationDrift } from '@atoll/database';
import type { ServiceDefinition } from '@atoll/service';
import { startPostgres } from '@atoll/testing';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { serviceDefinitions } from '../service-definitions.js';

/** Migrates an empty database to its newest state, and asks what would still be missing for the entities. */
async function driftOf({ name, database }: ServiceDefinition, url: string): Promise<string[]> {
  const app = await NestFactory.createApplicationContext(DatabaseModule.forRoot({ ...database, schema: name, url, poolSize: 2 }), {
    logger: ['error', 'warn'],
  });
  try {
    return await migrationDrift(app.get(DataSource));
  } finally {
    await app.close();
  }
}

const services = await serviceDefinitions();
if (services.length === 0) throw new Error('No apps/<service>/src/service.ts exports a service.');
const postgres = await startPostgres();
try {
  for (const service of services) {
    for (const statement of await driftOf(service, postgres.url)) {
      console.log(`${service.name}: the migrations lack\n  ${statement}`);
      process.exitCode = 1;
    }
  }
} finally {
  await postgres.stop();
}
