import { WholeNumber } from '@atoll/contracts';
import { IsIn, IsOptional, IsString, MinLength } from 'class-validator';
import { logLevels, type LogLevel } from './logger.js';
import { defaultDeadlineMs, RequestDeadline } from './request-deadline.js';
import { DatabaseUrl, mostOfAny } from './setting-fields.js';

/** The environment of every process. */
class ProcessEnv {
  @IsIn([...logLevels], { message: `ATOLL_LOG_LEVEL must be one of: ${logLevels.join(', ')}` })
  ATOLL_LOG_LEVEL: LogLevel = 'info';

  /** The address to listen on; `0.0.0.0` in a container. */
  @IsString()
  HOST: string = '127.0.0.1';
}

/** Of a process with the HTTP API. */
export class HttpEnv extends ProcessEnv {
  /** 0 for any that is free. */
  @WholeNumber({ min: 0, max: 65_535 })
  PORT: number = 3000;
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
  DATABASE_URL: string = '';

  /** `/livez`, `/readyz`, `/metrics`. */
  @WholeNumber({ min: 0, max: 65_535 })
  HEALTH_PORT: number = 8080;

  /**
   * How long a request may take, the same as the gateway's. Where it is more than the default, a service waits longer
   * for its database.
   */
  @RequestDeadline()
  ATOLL_DEADLINE_MS: number = defaultDeadlineMs;

  /** Maximum size of the event stream in MiB. Default: the operator's setting of the stream, else 1024. */
  @WholeNumber({ min: 16, max: mostOfAny, unit: 'MiB', optional: true })
  ATOLL_EVENTS_MAX_MIB: number | undefined = undefined;

  /** Copies of the event stream in a cluster of NATS. Default: the operator's setting of the stream, else 1. */
  @IsOptional()
  @IsIn(['1', '3', '5'], { message: 'ATOLL_EVENTS_REPLICAS must be 1, 3 or 5' })
  ATOLL_EVENTS_REPLICAS: string | undefined = undefined;
}
