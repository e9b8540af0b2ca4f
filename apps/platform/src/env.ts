import { DatabaseUrl, environmentWith, HttpEnv, type LocalSecrets } from '@atoll/service';

/**
 * The environment of the platform in one process. Everything has a default. The services and the gateway read their own
 * settings besides.
 */
export class PlatformEnv extends HttpEnv {
  /** Takes the place of the embedded PostgreSQL. */
  @DatabaseUrl({ optional: true })
  databaseUrl: string | undefined = undefined;
}

/**
 * Source of settings: the environment, then `secrets`, which is not called where the environment has those of a
 * platform in one process, which needs no secret of a bus.
 */
export function settingsSource(secrets: () => LocalSecrets): NodeJS.ProcessEnv {
  const { ATOLL_KEY_PEPPER, ATOLL_SEAL_KEYS } = process.env;
  return environmentWith(ATOLL_KEY_PEPPER && ATOLL_SEAL_KEYS ? undefined : secrets());
}
