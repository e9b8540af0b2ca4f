import type { ConnectionOptions } from '@nats-io/transport-node';

/**
 * Reads the credentials out of addresses as NATS' own tools write them, `nats://user:password@host:4222` or
 * `nats://token@host`, since the client takes them apart from the address. Those of the first address hold for all.
 * With one `tls://` all connections are encrypted: the client itself ignores the scheme, and would send the password in
 * plain text to a server without TLS. Throws an Error that names the faulty address by its position, never its value.
 */
export function parseAddresses(
  servers: string | string[],
): Pick<ConnectionOptions, 'servers' | 'user' | 'pass' | 'token' | 'tls'> {
  const urls = [servers].flat().map(readAddress);
  const [first] = urls;
  const user = decodeURIComponent(first?.username ?? '');
  const pass = decodeURIComponent(first?.password ?? '');
  const credentials = pass ? { user, pass } : { token: user };
  for (const url of urls) url.username = url.password = '';
  const isEncrypted = urls.some(({ protocol }) => protocol === 'tls:');
  return { servers: urls.map(String), ...(user && credentials), ...(isEncrypted && { tls: {} }) };
}

function readAddress(server: string, at: number): URL {
  const text = server.trim();
  const url = URL.parse(text.includes('://') ? text : `nats://${text}`);
  if (url && isAddress(url)) return url;
  throw new Error(
    `NATS_URL must be one or more URLs with nats:// or tls://, such as nats://user:password@nats.example.com:4222, separated by commas; entry ${at + 1} is not.`,
  );
}

/** An @ behind the host means that the password has an unescaped special character, and the host is a part of it. */
function isAddress({ protocol, hostname, username, password, pathname, search, hash }: URL): boolean {
  const isWhole = hostname !== '' && !(pathname + search + hash).includes('@');
  return /^(?:nats|tls):$/.test(protocol) && isWhole && isDecodable(`${username}:${password}`);
}

function isDecodable(text: string): boolean {
  try {
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
}
