import { statSync, type Stats } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { WholeNumber } from '@atoll/contracts';
import { parseAddresses, parseSecrets } from '@atoll/rpc';
import { IsIn, IsOptional, IsString } from 'class-validator';
import { logLevels, type LogLevel } from './logger.js';
import { dataFolderFault } from './local-secrets.js';
import { mostOfAny, ParsedBy } from './setting-fields.js';
import { DatabaseUrl } from './shared-settings.js';

/** The environment of every process. */
class ProcessEnv {
  @IsIn([...logLevels], { message: `ATOLL_LOG_LEVEL must be one of: ${logLevels.join(', ')}` })
  ATOLL_LOG_LEVEL: LogLevel = 'info';

  /** The address to listen on; `0.0.0.0` in a container. */
  @IsString()
  HOST: string = '127.0.0.1';

  /**
   * How long a request may take in all before it is answered 504. Where it is more than the default, a service waits
   * longer for its database.
   */
  @WholeNumber({ min: 100, max: 300_000, unit: 'milliseconds' })
  ATOLL_DEADLINE_MS: number = 5_000;
}

/** Of a process with the HTTP API. */
export class HttpEnv extends ProcessEnv {
  /** 0 for any that is free. */
  @WholeNumber({ min: 0, max: 65_535 })
  PORT: number = 3000;
}

/** Of a platform on one machine. */
export class DataFolderEnv {
  /** Database, keys and secrets: kept between starts. */
  @ParsedBy(requireFolder)
  ATOLL_DATA_DIR: string = '.atoll';

  /** The absolute path. */
  get dataDir(): string {
    return resolve(this.ATOLL_DATA_DIR);
  }
}

/** It need not exist yet. */
function requireFolder(path: string): void {
  for (let folder = resolve(path); ; folder = dirname(folder)) {
    const found = look(folder);
    if (found?.isDirectory()) return;
    if (found)
      throw new Error('ATOLL_DATA_DIR must be a folder, or a path at which one can be created: a file is in the way.');
  }
}

function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw dataFolderFault(error);
  }
}

/** Of a process on the bus. */
export class BusEnv extends ProcessEnv {
  /** Comma-separated. */
  @ParsedBy((servers) => parseAddresses(servers.split(',')))
  NATS_URL: string = 'nats://127.0.0.1:4222';

  /**
   * Signs the context of every call: the same in all processes. Comma-separated while it is changed: the first signs,
   * all are believed.
   */
  @ParsedBy(parseSecrets)
  ATOLL_BUS_SECRET: string = '';
}

/** Of a service in a process of its own. */
export class ServiceEnv extends BusEnv {
  @DatabaseUrl()
  databaseUrl: string = '';

  /** `/livez`, `/readyz`, `/metrics`. */
  @WholeNumber({ min: 0, max: 65_535 })
  HEALTH_PORT: number = 8080;

  /** Maximum size of the event stream in MiB. Default: the operator's setting of the stream, else 1024. */
  @WholeNumber({ min: 16, max: mostOfAny, unit: 'MiB', optional: true })
  ATOLL_EVENTS_MAX_MIB: number | undefined = undefined;

  /** Copies of the event stream in a cluster of NATS. Default: the operator's setting of the stream, else 1. */
  @IsOptional()
  @IsIn(['1', '3', '5'], { message: 'ATOLL_EVENTS_REPLICAS must be 1, 3 or 5' })
  ATOLL_EVENTS_REPLICAS: string | undefined = undefined;
}
