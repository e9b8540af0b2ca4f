import { WholeNumber } from '@atoll/contracts';
import { resolve } from 'node:path';
import { IsIn, IsOptional, IsString, MinLength } from 'class-validator';
import { logLevels, type LogLevel } from './logger.js';
import { loadEnv } from './env.js';
import { mostOfAny } from './setting-fields.js';
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

class DataFolderEnv {
  /** Database, keys and secrets of a platform on one machine: kept between starts. */
  @IsString()
  ATOLL_DATA_DIR: string = '.atoll';
}

/** The absolute path of the data folder. Read before all else: the source of other settings is in it. */
export function dataFolder(): string {
  return resolve(loadEnv(DataFolderEnv).ATOLL_DATA_DIR);
}

/** Of a process on the bus. */
export class BusEnv extends ProcessEnv {
  /** Comma-separated. */
  @IsString()
  NATS_URL: string = 'nats://127.0.0.1:4222';

  /**
   * Signs the context of every call: the same in all processes. Comma-separated while it is changed: the first signs,
   * all are believed.
   */
  @MinLength(16, { message: 'ATOLL_BUS_SECRET must be at least 16 characters long' })
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
