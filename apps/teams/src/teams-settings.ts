import { deletionHolders, Email, Text } from '@atoll/contracts';
import { Variable } from '@atoll/service';
import { MinLength } from 'class-validator';

/** What a deployment decides about the teams service. */
export class TeamsSettings {
  /** Keys the HMAC under which API keys are stored: the same in the gateway. */
  @Variable('ATOLL_KEY_PEPPER')
  @MinLength(16, { message: 'ATOLL_KEY_PEPPER must be at least 16 characters long' })
  keyPepper: string = '';

  /** The operator's account, made at the first start. */
  @Variable('ATOLL_ADMIN_EMAIL')
  @Email()
  adminEmail: string = 'admin@atoll.local';

  /** The operator's key; one is made and printed once where it is left out. */
  @Variable('ATOLL_ADMIN_KEY')
  @Text({ max: 64, optional: true })
  adminKey: string | undefined = undefined;

  /** The services that can hold something of a team, and so have a say in its deletion. */
  deletionHolders: readonly string[] = deletionHolders;

  /** How long a deletion waits for the answers of the services that may hold something. */
  deletionPatienceMs: number = 3_000;

  /** How long the answer to a forced deletion waits for its end; then it says what is left. */
  forcedDeletionPatienceMs: number = 8_000;

  /** How often deletions that are under way are looked at. */
  upkeepMs: number = 1_000;

  /** How long a writer waits for its turn among those of its team. */
  writerPatienceMs: number = 2_000;
}
