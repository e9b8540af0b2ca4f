import { BlockList, isIP } from 'node:net';
import type { ImageReference } from './image-reference.js';

/** Addresses, in any notation, at which clouds serve a machine's credentials to any process on it. */
const metadataAddresses = new BlockList();
for (const address of ['169.254.169.254', '169.254.170.2', '100.100.100.200', '168.63.129.16'])
  metadataAddresses.addAddress(address);
for (const address of ['fd00:ec2::254', 'fd20:ce::254']) metadataAddresses.addAddress(address, 'ipv6');

/**
 * Whether the registry is the metadata service of a cloud: an engine that looked for the image there would ask on
 * behalf of its tenant.
 */
export function isAtMetadataService({ repository }: ImageReference): boolean {
  const [registry = ''] = repository.split('/', 1);
  const host = addressIn(registry.replace(/:\d+$/, '')).replaceAll(/[[\]]/g, '');
  const kind = isIP(host);
  return kind > 0 && metadataAddresses.check(host, kind === 6 ? 'ipv6' : 'ipv4');
}

/** As resolvers read it: `2852039166` and `0xa9.0376.43518` are addresses to them, and to the parser of URLs. */
function addressIn(host: string): string {
  return URL.canParse(`http://${host}`) ? new URL(`http://${host}`).hostname : host;
}
