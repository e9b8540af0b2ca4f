import { IsOptional, IsString, IsUrl, Matches } from 'class-validator';
import { Email, Text } from '@atoll/contracts';
import { HttpEnv } from '@atoll/service';

/** The environment of the platform in one process. Everything has a default. The gateway reads its own limits besides. */
export class PlatformEnv extends HttpEnv {
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

  /** ISO 4217: what all prices and costs are in. */
  @Matches(/^[A-Z]{3}$/, { message: 'ATOLL_CURRENCY must be three capital letters of ISO 4217, such as USD' })
  ATOLL_CURRENCY: string = 'USD';

  /** Where metrics of GPUs are read; simulated without. */
  @IsOptional()
  @IsUrl({ require_tld: false, protocols: ['http', 'https'] }, { message: 'ATOLL_PROMETHEUS_URL must be an http or https URL' })
  ATOLL_PROMETHEUS_URL: string | undefined = undefined;
}
