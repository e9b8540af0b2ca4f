import { Type } from 'class-transformer';
import { IsIn, IsInt, IsString, Max, Min } from 'class-validator';
import { Email, Text } from '@atoll/contracts';
import { logLevels, type LogLevel } from '@atoll/service';

/** The environment of the platform in one process. Everything has a default. The gateway reads its own limits besides. */
export class PlatformEnv {
  @Type(() => Number)
  @IsInt({ message: 'PORT must be a port' })
  @Min(0)
  @Max(65_535)
  PORT: number = 3000;

  @IsString()
  HOST: string = '127.0.0.1';

  /** Database, keys and secrets: kept between starts. */
  @IsString()
  ATOLL_DATA_DIR: string = '.atoll';

  /** Takes the place of the embedded PostgreSQL. */
  @Text({ max: 2048, optional: true })
  DATABASE_URL: string | undefined = undefined;

  @Email()
  ATOLL_ADMIN_EMAIL: string = 'admin@atoll.local';

  @Text({ max: 64, optional: true })
  ATOLL_ADMIN_KEY: string | undefined = undefined;

  /** One is made and kept in the data folder unless given. */
  @Text({ min: 16, max: 1024, optional: true })
  ATOLL_KEY_PEPPER: string | undefined = undefined;

  @IsIn([...logLevels])
  ATOLL_LOG_LEVEL: LogLevel = 'info';
}
