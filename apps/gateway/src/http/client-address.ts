import ipaddr from 'ipaddr.js';
import { addressInRanges, type AddressRange } from '@atoll/contracts';

/** An address that cannot be read: it lies in no whitelist and in no range. */
export const unknownAddress = 'unknown';

/**
 * Where a request comes from: the peer of the socket or, where the peer is a trusted proxy, the right-most hop of
 * `X-Forwarded-For` that is none. What stands left of that hop was written by the client and is not looked at. A hop
 * that is no address ends the search as `unknown`: whoever it was, it is not let in by the address of the proxy that
 * wrote it down.
 */
export function clientAddress(
  peer: string | undefined,
  forwardedFor: string | undefined,
  trusted: readonly AddressRange[],
): string {
  let address = readAddress(peer ?? '');
  if (trusted.length === 0 || !forwardedFor) return address;
  const hops = forwardedFor.split(',');
  while (hops.length > 0 && addressInRanges(address, trusted)) address = readAddress(hops.pop() ?? '');
  return address;
}

/** Some proxies write the port down too: `203.0.113.9:4711`, `[2001:db8::1]:4711`. */
const withPort = /^(?:\[([^\]]+)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+)$/;

/** One spelling for each address: IPv4-mapped as IPv4, IPv6 shortened, without zone or port. */
function readAddress(text: string): string {
  const trimmed = text.trim();
  const [, bracketed, dotted] = withPort.exec(trimmed) ?? [];
  const bare = (bracketed ?? dotted ?? trimmed).replace(/%.*$/, '');
  if (ipaddr.IPv4.isValidFourPartDecimal(bare)) return bare;
  return bare.includes(':') && ipaddr.IPv6.isValid(bare) ? ipaddr.process(bare).toString() : unknownAddress;
}
