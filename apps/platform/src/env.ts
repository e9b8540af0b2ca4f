import { DatabaseUrl, HttpEnv, loadLocalSecrets } from '@atoll/service';

/**
 * The environment of the platform in one process. Everything has a default. The services and the gateway read their own
 * settings besides.
 */
export class PlatformEnv extends HttpEnv {
  /** Takes the place of the embedded PostgreSQL. */
  @DatabaseUrl({ optional: true })
  databaseUrl: string | undefined = undefined;
}

/** Source of settings: the environment, then the secrets of the data folder. */
export function settingsSource(dataDir: string): NodeJS.ProcessEnv {
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  if (given.ATOLL_KEY_PEPPER && given.ATOLL_SEAL_KEYS) return given;
  const { keyPepper, sealKeys } = loadLocalSecrets(dataDir);
  return { ATOLL_KEY_PEPPER: keyPepper, ATOLL_SEAL_KEYS: sealKeys, ...given };
}
