import { messageOf, rootOf } from '@atoll/errors';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { connectDataSource, runningPostgresUrl, startEmbeddedPostgres } from '@atoll/database';
import type { Wire } from '@atoll/contracts';
import { DataFolderEnv, loadEnv, loadLocalSecrets, readSettings, type ServiceDefinition } from '@atoll/service';
import type { DataSource } from 'typeorm';
import { PlatformEnv, settingsSource } from './env.js';
import { services } from './services.js';

/** What a command of the operator works with. */
export interface Beside<Settings> {
  /** Connects to the schema of a service, which must be at the version of this program. */
  readonly connect: (service: string) => Promise<DataSource>;
  /** As `connect`, to each of them: a schema of another release ends the command before it has done anything. */
  readonly connectAll: (
    services: readonly ServiceDefinition[],
  ) => Promise<(readonly [ServiceDefinition, DataSource])[]>;
  readonly settings: Settings;
}

/** Of a command that needs none. */
export class NoSettings {}

/**
 * Runs a command of the operator on the schemas of services, beside a running platform or without one: no service
 * boots, so nothing is migrated, no worker works and no timer runs. Where the services run apart it takes their
 * `DATABASE_URL`. Ends the process with code 1 and one clear line where the command fails.
 */
export async function besidePlatform<Settings extends object>(
  type: Wire<Settings>,
  command: (beside: Beside<Settings>) => Promise<void>,
): Promise<void> {
  const undo: (() => Promise<void>)[] = [];
  let hasBegun = false;
  try {
    const { dataDir } = loadEnv(DataFolderEnv);
    const source = hasSecrets(dataDir) ? settingsSource(() => loadLocalSecrets(dataDir)) : process.env;
    if (!source.DATABASE_URL && !existsSync(join(dataDir, 'postgres'))) {
      throw new Error(
        `${dataDir} contains no platform. Set ATOLL_DATA_DIR to its data folder, or DATABASE_URL to its database.`,
      );
    }
    const [env, settings] = await readSettings([{ settings: PlatformEnv }, { settings: type }], source);
    const { ATOLL_DEADLINE_MS: deadlineMs } = env;
    const url = env.databaseUrl ?? (await databaseOf(dataDir, undo));
    const connect = async (name: string) => {
      const definition = services.find((service) => service.name === name);
      if (!definition)
        throw new Error(
          `unknown service ${name}; the services are ${services.map((service) => service.name).join(', ')}`,
        );
      const dataSource = await connectDataSource({ ...definition.database, schema: name, url, deadlineMs });
      undo.push(() => dataSource.destroy());
      return dataSource;
    };
    const connectAll = async (all: readonly ServiceDefinition[]) => {
      const connected: (readonly [ServiceDefinition, DataSource])[] = [];
      for (const service of all) connected.push([service, await connect(service.name)]);
      return connected;
    };
    hasBegun = true;
    await command({ connect, connectAll, settings });
  } catch (error) {
    console.error(`${hasBegun ? 'The command failed' : 'Nothing was done'}: ${messageOf(rootOf(error))}`);
    process.exitCode = 1;
  }
  for (const step of undo.reverse()) await step();
}

async function databaseOf(dataDir: string, undo: (() => Promise<void>)[]): Promise<string> {
  const running = runningPostgresUrl(dataDir);
  if (running !== undefined) return running;
  const postgres = await startEmbeddedPostgres({ dataDir });
  undo.push(() => postgres.stop());
  return postgres.url;
}

/** A command makes no secrets: what they sign or digest would be void elsewhere. */
function hasSecrets(dataDir: string): boolean {
  return existsSync(join(dataDir, 'secrets.json'));
}
