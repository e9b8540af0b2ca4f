import { Email, Text } from '@atoll/contracts';
import { ServiceEnv } from '@atoll/service';
import { MinLength } from 'class-validator';

export class TeamsEnv extends ServiceEnv {
  /** Under which API keys are digested: the same in the gateway. */
  @MinLength(16, { message: 'ATOLL_KEY_PEPPER must be at least 16 characters long' })
  ATOLL_KEY_PEPPER: string = '';

  /** The operator's account, made at the first start. */
  @Email()
  ATOLL_ADMIN_EMAIL: string = 'admin@atoll.local';

  /** The operator's key; one is made and printed once where it is left out. */
  @Text({ max: 64, optional: true })
  ATOLL_ADMIN_KEY: string | undefined = undefined;
}
