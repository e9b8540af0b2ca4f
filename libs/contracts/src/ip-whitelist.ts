import { ValidateBy } from 'class-validator';
import ipaddr from 'ipaddr.js';
import { Text, type FieldOptions } from './fields.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type AddressRange = readonly [Address, number];

/** Bad entries that a refusal names. */
const mostNamed = 10;

const octet = '(?:0|[1-9]\\d?|1\\d\\d|2[0-4]\\d|25[0-5])';
const fourDecimals = new RegExp(`^${octet}(?:\\.${octet}){3}$`);
/** Five groups of zeros, then ones: an IPv4 address in IPv6 (RFC 4291, 2.5.5.2). */
const mappedGroups = '0,0,0,0,0,65535';

/**
 * Strict: four decimal parts or a full IPv6 address, no zone, so `127.1` and `0x7f.1` are no addresses. IPv4-mapped
 * IPv6 becomes IPv4; other ways to write one inside the other (`::127.0.0.1`) are given up and refused. Reads a text
 * once, and most of what is no address by a look: ipaddr.js makes an error of it, which takes ten times as long.
 */
function parseAddress(text: string): Address | null {
  if (fourDecimals.test(text)) return ipaddr.IPv4.parse(text);
  if (!text.includes(':') || !/^[0-9a-fx:.]+$/i.test(text) || /^(?!::ffff:)[^:]*:.*\./i.test(text)) return null;
  try {
    const address = ipaddr.IPv6.parse(text);
    return address.parts.slice(0, 6).join() === mappedGroups ? address.toIPv4Address() : address;
  } catch {
    return null;
  }
}

/** An address or a CIDR as a range; null where it is neither. Bits behind the prefix are ignored. */
export function parseAddressRange(text: string): AddressRange | null {
  const [addressText = '', prefixText, ...rest] = text.split('/');
  const address = parseAddress(addressText);
  if (!address || rest.length > 0) return null;
  const mapped = address.kind() === 'ipv4' && addressText.includes(':');
  const bits = address.kind() === 'ipv4' ? 32 : 128;
  if (prefixText === undefined) return [address, bits];
  if (!/^(0|[1-9]\d{0,2})$/.test(prefixText)) return null;
  const prefix = mapped ? Number(prefixText) - 96 : Number(prefixText);
  return prefix >= 0 && prefix <= bits ? [address, prefix] : null;
}

/** The entries of a comma-separated whitelist; empty text has none. */
export function whitelistEntries(text: string): string[] {
  return text.trim() === '' ? [] : text.split(',').map((entry) => entry.trim());
}

/**
 * Whether `address` (as the socket or a trusted proxy tells it) lies in one of the ranges. An address that cannot be
 * read lies in none.
 */
export function addressInRanges(address: string, ranges: readonly AddressRange[]): boolean {
  const parsed = parseAddress(address.replace(/%.*$/, ''));
  if (!parsed) return false;
  return ranges.some(([range, prefix]) => {
    if (parsed.kind() === 'ipv4') return range.kind() === 'ipv4' && (parsed as ipaddr.IPv4).match(range, prefix);
    return range.kind() === 'ipv6' && (parsed as ipaddr.IPv6).match(range, prefix);
  });
}

/**
 * An IPv4 address, or the /64 an IPv6 address lies in: a subscriber usually has a whole /64 to choose from (RFC 6177).
 * What cannot be read is its own.
 */
export function networkOf(address: string): string {
  const parsed = parseAddress(address.replace(/%.*$/, ''));
  if (!parsed) return address;
  return parsed.kind() === 'ipv4'
    ? parsed.toString()
    : ipaddr.IPv6.networkAddressFromCIDR(`${parsed.toString()}/64`).toString();
}

/**
 * The ranges of a whitelist, to be read once and asked for each request: it may have a thousand. Null for an empty one,
 * which allows any address. An entry that cannot be read allows none.
 */
export function whitelistRanges(whitelist: string): readonly AddressRange[] | null {
  const entries = whitelistEntries(whitelist);
  return entries.length === 0 ? null : entries.map(parseAddressRange).filter((range) => range !== null);
}

/** Whether a key with these ranges may be used from this address. */
export function addressAllowed(address: string, ranges: readonly AddressRange[] | null): boolean {
  return ranges === null || addressInRanges(address, ranges);
}

/** Up to `mostNamed` entries that are no ranges, and one more where there are more. */
function badEntries(whitelist: unknown): string[] {
  const bad: string[] = [];
  if (typeof whitelist !== 'string') return bad;
  for (const entry of whitelistEntries(whitelist)) {
    if (parseAddressRange(entry) === null && bad.push(entry) > mostNamed) break;
  }
  return bad;
}

function named(bad: readonly string[]): string {
  const shown = bad.slice(0, mostNamed).map((entry) => JSON.stringify(entry.slice(0, 64)));
  return shown.join(', ') + (bad.length > mostNamed ? ' and more' : '');
}

/** Comma-separated IPv4/IPv6 addresses or CIDRs; empty means any. The refusal names the first ten bad entries. */
export function IpWhitelist(options: FieldOptions = {}): PropertyDecorator {
  const entriesAreRanges = ValidateBy({
    name: 'ipWhitelist',
    validator: {
      validate: (value: unknown) => badEntries(value).length === 0,
      defaultMessage: (argument) =>
        `$property must be a comma-separated list of IPv4/IPv6 addresses or CIDRs; not one: ${named(
          badEntries(argument?.value),
        )}`,
    },
  });
  return (target, property) => {
    Text({
      min: 0,
      max: 4096,
      format: 'cidr-list',
      description: 'Comma-separated IPv4/IPv6 addresses or CIDRs that may use the API key; empty for any.',
      example: '203.0.113.0/24',
      ...options,
    })(target, property);
    entriesAreRanges(target, property);
  };
}
