import type { ConnectionOptions } from '@nats-io/transport-node';

/**
 * Reads the credentials out of addresses as NATS' own tools write them, `nats://user:password@host:4222` or
 * `nats://token@host`, since the client takes them apart from the address. Those of the first address hold for all.
 */
export function parseAddresses(
  servers: string | string[],
): Pick<ConnectionOptions, 'servers' | 'user' | 'pass' | 'token'> {
  const urls = [servers].flat().map((server) => new URL(server.includes('://') ? server : `nats://${server}`));
  const [first] = urls;
  const user = decodeURIComponent(first?.username ?? '');
  const pass = decodeURIComponent(first?.password ?? '');
  const credentials = pass ? { user, pass } : { token: user };
  for (const url of urls) url.username = url.password = '';
  return { servers: urls.map(String), ...(user && credentials) };
}
