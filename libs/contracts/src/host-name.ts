/** A field that is a DNS name, or an IPv4 or IPv6 address. */
export const hostName = {
  max: 253,
  pattern: /^(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9A-Fa-f:]{2,39})$/,
  patternHint: 'a host name or an IP address',
};
