import { BlockList, isIP } from 'node:net';
import type { ImageReference } from './image-reference.js';

/** Addresses, in any notation, at which clouds serve a machine's credentials to any process on it. */
const metadataAddresses = new BlockList();
for (const address of ['169.254.169.254', '169.254.170.2', '100.100.100.200']) metadataAddresses.addAddress(address);
metadataAddresses.addAddress('fd00:ec2::254', 'ipv6');

/**
 * Whether the registry is the metadata service of a cloud: an engine that looked for the image there would ask on
 * behalf of its tenant.
 */
export function isAtMetadataService({ repository }: ImageReference): boolean {
  const [registry = ''] = repository.split('/', 1);
  const host = registry.replace(/:\d+$/, '').replaceAll(/[[\]]/g, '');
  const kind = isIP(host);
  return kind > 0 && metadataAddresses.check(host, kind === 6 ? 'ipv6' : 'ipv4');
}
