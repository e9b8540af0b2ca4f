import { innermostAddress, isMetadataAddress } from '@atoll/contracts';
import type { ImageReference } from './image-reference.js';

/**
 * Whether the registry is the metadata service of a cloud, by any spelling of its address: an engine that looked for
 * the image there would ask on behalf of its tenant.
 */
export function isAtMetadataService({ repository }: ImageReference): boolean {
  const [registry = ''] = repository.split('/', 1);
  const address = innermostAddress(hostOf(registry).replaceAll(/[[\]]/g, ''));
  return address !== null && isMetadataAddress(address);
}

/** As resolvers read it: `2852039166` and `0xa9.0376.43518` are addresses to them, and to the parser of URLs. */
function hostOf(registry: string): string {
  return URL.canParse(`http://${registry}`) ? new URL(`http://${registry}`).hostname : registry;
}
