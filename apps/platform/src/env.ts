import { DatabaseUrl, HttpEnv, type LocalSecrets } from '@atoll/service';

/**
 * The environment of the platform in one process. Everything has a default. The services and the gateway read their own
 * settings besides.
 */
export class PlatformEnv extends HttpEnv {
  /** Takes the place of the embedded PostgreSQL. */
  @DatabaseUrl({ optional: true })
  databaseUrl: string | undefined = undefined;
}

/** Source of settings: the environment, then `secrets`, which is not called where the environment has them. */
export function settingsSource(secrets: () => LocalSecrets): NodeJS.ProcessEnv {
  const given = Object.fromEntries(Object.entries(process.env).filter(([, value]) => value !== ''));
  if (given.ATOLL_KEY_PEPPER && given.ATOLL_SEAL_KEYS) return given;
  const { keyPepper, sealKeys } = secrets();
  return { ATOLL_KEY_PEPPER: keyPepper, ATOLL_SEAL_KEYS: sealKeys, ...given };
}
