import { IsOptional, IsString } from 'class-validator';
import { DatabaseUrl, defaultDeadlineMs, HttpEnv, loadLocalSecrets, RequestDeadline } from '@atoll/service';

/**
 * The environment of the platform in one process. Everything has a default. The services and the gateway read their own
 * settings besides.
 */
export class PlatformEnv extends HttpEnv {
  /** Database, keys and secrets: kept between starts. */
  @IsString()
  ATOLL_DATA_DIR: string = '.atoll';

  /** Takes the place of the embedded PostgreSQL. */
  @IsOptional()
  @DatabaseUrl()
  DATABASE_URL: string | undefined = undefined;

  /** How long a request may take: the gateway reads it too. */
  @RequestDeadline()
  ATOLL_DEADLINE_MS: number = defaultDeadlineMs;
}

/** Source of settings: the environment, then the secrets of the data folder. */
export function settingsSource(dataDir: string): NodeJS.ProcessEnv {
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  if (given.ATOLL_KEY_PEPPER && given.ATOLL_SEAL_KEYS) return given;
  const { keyPepper, sealKeys } = loadLocalSecrets(dataDir);
  return { ATOLL_KEY_PEPPER: keyPepper, ATOLL_SEAL_KEYS: sealKeys, ...given };
}
