import ipaddr from 'ipaddr.js';

/** Those of Amazon, Google and others, of Amazon's containers, of Alibaba, of Azure; by IPv6 of Amazon and Google. */
const metadataAddresses: ReadonlySet<string> = new Set([
  '169.254.169.254',
  '169.254.170.2',
  '100.100.100.200',
  '168.63.129.16',
  'fd00:ec2::254',
  'fd20:ce::254',
]);

/**
 * Whether clouds serve a machine's credentials at this address to any process on it: it is never dialled for a tenant.
 * Takes what `innermostAddress` returns.
 */
export function isMetadataAddress(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  return metadataAddresses.has(address.toString());
}

/** Where an address leads to: IPv4 inside of IPv6 (mapped, NAT64, 6to4) is that. Null for what is no address. */
export function innermostAddress(text: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  if (!ipaddr.isValid(text)) return null;
  const address = ipaddr.process(text);
  if (address.kind() === 'ipv4') return address;
  const bytes = address.toByteArray();
  const range = address.range();
  // RFC 6052 §2.2 for the well-known prefix, RFC 3056 §2.
  if (range === 'rfc6052') return ipaddr.fromByteArray(bytes.slice(12));
  if (range === '6to4') return ipaddr.fromByteArray(bytes.slice(2, 6));
  return address;
}
