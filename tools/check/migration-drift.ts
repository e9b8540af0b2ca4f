import { globSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { DatabaseModule, migrationDrift, type DatabaseOptions } from '@atoll/database';
import { startPostgres } from '@atoll/testing';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';

/** What each service exports from apps/<service>/src/database/schema.ts, under whatever name. */
type ServiceSchema = Pick<DatabaseOptions, 'schema' | 'entities' | 'migrations'>;

function isServiceSchema(value: unknown): value is ServiceSchema {
  return typeof value === 'object' && value !== null && 'schema' in value && 'entities' in value && 'migrations' in value;
}

async function serviceSchemas(): Promise<ServiceSchema[]> {
  const files = globSync('apps/*/src/database/schema.ts').map((file) => `dist/${file.replace(/\.ts$/, '.js')}`);
  const modules = await Promise.all(files.map(async (file) => (await import(pathToFileURL(file).href)) as object));
  return modules.flatMap((module) => Object.values(module).filter(isServiceSchema));
}

/** Migrates an empty database to its newest state, and asks what would still be missing for the entities. */
async function driftOf(service: ServiceSchema, url: string): Promise<string[]> {
  const app = await NestFactory.createApplicationContext(DatabaseModule.forRoot({ ...service, url, poolSize: 2 }), {
    logger: ['error', 'warn'],
  });
  try {
    return await migrationDrift(app.get(DataSource));
  } finally {
    await app.close();
  }
}

const schemas = await serviceSchemas();
if (!schemas.length) throw new Error('No apps/<service>/src/database/schema.ts exports { schema, entities, migrations }.');
const postgres = await startPostgres();
try {
  for (const service of schemas) {
    for (const statement of await driftOf(service, postgres.url)) {
      console.log(`${service.schema}: the migrations lack\n  ${statement}`);
      process.exitCode = 1;
    }
  }
} finally {
  await postgres.stop();
}
