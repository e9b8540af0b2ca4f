const schemes = /^postgres(?:ql)?:\/\//;

/**
 * Reads the URL of a database as pg does: host, port and password may be missing, `?host=` may name the folder of a
 * socket, and the database is that of the user's name where none is given. Throws an Error that shows nothing of the
 * text.
 */
export function parseDatabaseUrl(text: string): URL {
  const url = schemes.test(text) && !text.includes('#') ? readUrl(text) : null;
  if (url && isWhole(url) && isDecodable(url)) return url;
  throw new Error(
    'DATABASE_URL must be a URL such as postgres://user:password@db.example.com:5432/atoll; percent-encode special characters in its password.',
  );
}

/** Host and database of the URL, for a person. */
export function placeOf({ host, pathname, searchParams }: URL): string {
  return `${searchParams.get('host') ?? host}${pathname}`;
}

/**
 * With a user and without a host it is a URL for pg alone, which then takes the host of this machine. Null for what is
 * none.
 */
export function readUrl(text: string): URL | null {
  return URL.parse(text) ?? URL.parse(text.replace('@/', '@localhost/'));
}

/**
 * `options` of a URL, as libpq has them: settings for the server, such as `-c work_mem=8MB`. Returns them, and the URL
 * without them, since pg would send them in place of those that a service sends.
 */
export function withoutOptions(url: string): { url: string; options: string } {
  const at = url.indexOf('?');
  const parameters = new URLSearchParams(at < 0 ? '' : url.slice(at));
  if (!parameters.has('options')) return { url, options: '' };
  const options = parameters.getAll('options').join(' ');
  parameters.delete('options');
  return { url: [url.slice(0, at), ...(parameters.size > 0 ? [parameters] : [])].join('?'), options };
}

/**
 * An @ behind the host means that the password has an unescaped special character, and that host and database are parts
 * of it.
 */
function isWhole({ pathname, search, searchParams, username }: URL): boolean {
  const hasDatabase = pathname.length > 1 || username !== '' || searchParams.has('user');
  return hasDatabase && !`${pathname}${search}`.includes('@');
}

function isDecodable({ username, password, hostname, pathname }: URL): boolean {
  try {
    decodeURIComponent(`${username}:${password}@${hostname}`);
    decodeURI(pathname);
    return true;
  } catch {
    return false;
  }
}
