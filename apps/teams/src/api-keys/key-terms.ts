import { whitelistEntries } from '@atoll/contracts';
import { type KeyTerms } from '@atoll/contracts/teams';
import { invalidField } from '@atoll/errors';

const dayMs = 24 * 60 * 60 * 1000;
const defaultLifeMs = 90 * dayMs;
const longestLifeMs = 365 * dayMs;

export interface SettledTerms {
  expiryDate: Date;
  /** Or it is the default. */
  isExpiryAsked: boolean;
  /** Left out: that of the key which is replaced. */
  ipWhitelist?: string;
  graceSeconds: number;
}

/**
 * The terms asked for a key, with defaults; `nowMs` is the database's. Throws `invalid_input` for an expiry in the
 * past, or too far ahead.
 */
export function settleTerms(terms: KeyTerms, nowMs: number): SettledTerms {
  const { expiry_date: asked, ip_whitelist: whitelist, grace_seconds: graceSeconds = 0 } = terms;
  const expiryMs = asked === undefined ? nowMs + defaultLifeMs : Date.parse(asked);
  if (Number.isNaN(expiryMs))
    throw invalidField('expiry_date', 'isInstant', 'must be an instant such as 2026-10-01T00:00:00Z');
  if (expiryMs <= nowMs) throw invalidField('expiry_date', 'inFuture', 'must be in the future');
  if (expiryMs > nowMs + longestLifeMs)
    throw invalidField('expiry_date', 'withinYear', 'must be at most 365 days ahead');
  return {
    expiryDate: new Date(expiryMs),
    isExpiryAsked: asked !== undefined,
    ...(whitelist !== undefined && { ipWhitelist: whitelistEntries(whitelist).join(',') }),
    graceSeconds,
  };
}
