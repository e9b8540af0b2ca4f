import { ValidateBy } from 'class-validator';
import ipaddr from 'ipaddr.js';
import { Text, type FieldOptions } from './fields.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
export type AddressRange = readonly [Address, number];

/**
 * Strict: four decimal parts or a full IPv6 address, no zone, so `127.1` and `0x7f.1` are no addresses. IPv4-mapped
 * IPv6 becomes IPv4; other ways to write one inside the other (`::127.0.0.1`) are given up and refused.
 */
function parseAddress(text: string): Address | null {
  if (text.includes('%') || /^(?!::ffff:)[^:]*:.*\./i.test(text)) return null;
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text);
  return text.includes(':') && ipaddr.IPv6.isValid(text) ? ipaddr.process(text) : null;
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

/** Whether a key with this whitelist may be used from this address. An empty whitelist allows any. */
export function addressAllowed(address: string, whitelist: string): boolean {
  const entries = whitelistEntries(whitelist);
  if (entries.length === 0) return true;
  return addressInRanges(
    address,
    entries.map(parseAddressRange).filter((range) => range !== null),
  );
}

/** Comma-separated IPv4/IPv6 addresses or CIDRs; empty means any. A bad entry is named in the refusal. */
export function IpWhitelist(options: FieldOptions = {}): PropertyDecorator {
  const badEntries = (value: unknown): string[] =>
    typeof value === 'string' ? whitelistEntries(value).filter((entry) => parseAddressRange(entry) === null) : [];
  const entriesAreRanges = ValidateBy({
    name: 'ipWhitelist',
    validator: {
      validate: (value: unknown) => badEntries(value).length === 0,
      defaultMessage: (argument) =>
        `$property must be a comma-separated list of IPv4/IPv6 addresses or CIDRs; not one: ${badEntries(
          argument?.value,
        )
          .map((entry) => JSON.stringify(entry.slice(0, 64)))
          .join(', ')}`,
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
