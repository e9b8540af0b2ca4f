import { Type } from 'class-transformer';
import { IsIn, IsInt, IsString, Matches, Max, Min, MinLength } from 'class-validator';
import { logLevels, type LogLevel } from './logger.js';

/** The environment of every process. */
class ProcessEnv {
  @IsIn([...logLevels])
  ATOLL_LOG_LEVEL: LogLevel = 'info';

  /** The address to listen on; `0.0.0.0` in a container. */
  @IsString()
  HOST: string = '127.0.0.1';
}

/** Of a process with the HTTP API. */
export class HttpEnv extends ProcessEnv {
  /** 0 for any that is free. */
  @Type(() => Number)
  @IsInt({ message: 'PORT must be a port' })
  @Min(0, { message: 'PORT must be a port' })
  @Max(65_535, { message: 'PORT must be a port' })
  PORT: number = 3000;
}

/** Of a process on the bus. */
export class BusEnv extends ProcessEnv {
  /** Comma-separated. */
  @IsString()
  NATS_URL: string = 'nats://127.0.0.1:4222';

  /** Signs the context of every call: the same in all processes. Comma-separated while it is changed: the first signs, all are believed. */
  @MinLength(16, { message: 'ATOLL_BUS_SECRET must be at least 16 characters long' })
  ATOLL_BUS_SECRET: string = '';
}

/** Of a service in a process of its own. */
export class ServiceEnv extends BusEnv {
  @Matches(/^postgres(ql)?:\/\//, { message: 'DATABASE_URL must be a postgres:// URL' })
  DATABASE_URL: string = '';

  /** `/livez`, `/readyz`, `/metrics`. */
  @Type(() => Number)
  @IsInt({ message: 'HEALTH_PORT must be a port' })
  @Min(0, { message: 'HEALTH_PORT must be a port' })
  @Max(65_535, { message: 'HEALTH_PORT must be a port' })
  HEALTH_PORT: number = 8080;
}
