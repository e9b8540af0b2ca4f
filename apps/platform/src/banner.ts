export interface Facts {
  url: string;
  /** Where people open the console: passkeys are for names, and sessions for this origin. */
  publicUrl: string;
  /** Milliseconds from the start of the process. */
  readyAfterMs: number;
  dataDir: string;
  /** What runs pods. */
  cluster: string;
  /** Only where it was made just now: it is shown once. */
  adminKey: string | undefined;
  /** Whether the operator's key is the one in `ATOLL_ADMIN_KEY`. */
  acceptsBroughtKey: boolean;
  /** Only while the operator has no password. */
  adminLink: string | undefined;
}

/** What a person sees when the platform is ready: where it is, and the first call to make. */
export function banner(facts: Facts): string {
  const { url, publicUrl, readyAfterMs, dataDir, cluster, adminKey, adminLink } = facts;
  const key = adminKey ?? '$ATOLL_KEY';
  const aboutLink = adminLink
    ? `\n  Log in       ${adminLink}\n               sets the operator's password; good once, for 24 hours.`
    : '';
  return `
Atoll is ready after ${(readyAfterMs / 1000).toFixed(1)} s.

  Console      ${publicUrl}/
  API          ${url}/api
  Docs         ${url}/api/docs
  Data         ${dataDir}
  Pods         ${cluster}
  Admin key    ${aboutKeyOf(facts)}${aboutLink}

  Try it:      curl -s -H "Authorization: Bearer ${key}" ${url}/api/user/profile
`;
}

function aboutKeyOf({ adminKey, acceptsBroughtKey }: Facts): string {
  if (adminKey)
    return `${adminKey}\n               shown only once; it does not expire. Store it safely, and use keys of teams for everyday work.`;
  if (acceptsBroughtKey) return 'the one in ATOLL_ADMIN_KEY.';
  return 'as printed at the first start. Lost it? npm run admin-key makes a new one.';
}
