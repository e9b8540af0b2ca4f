import { isIP } from 'node:net';

/** Whom a passkey is for (WebAuthn, "RP ID"). */
export interface RelyingParty {
  id: string;
  name: string;
  /** From whose pages it is used. */
  origins: string[];
}

/**
 * By the public address alone. Undefined where it cannot have passkeys: they need a host name, and TLS anywhere but on
 * this machine.
 */
export function relyingPartyOf(publicUrl: string): RelyingParty | undefined {
  const { hostname, protocol, origin } = new URL(publicUrl);
  const isSecure = protocol === 'https:' || hostname === 'localhost';
  if (!isSecure || isIP(hostname.replace(/^\[|\]$/g, '')) !== 0) return undefined;
  return { id: hostname, name: 'Atoll', origins: [origin] };
}
