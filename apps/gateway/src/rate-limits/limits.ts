import type { BucketSize } from './token-bucket.js';

/** So many requests in so many seconds, in the long run. */
export interface Limit {
  count: number;
  seconds: number;
}

export interface Limits {
  /** Per API key. */
  key: Limit;
  /** Per team, over all its membership keys. */
  team: Limit;
  /** Per API key, on the billing paths; on top of `key`. */
  billing: Limit;
  /** Per address, of requests without credentials. */
  anonymous: Limit;
  /** Per address, of requests whose credentials are refused. */
  authFailures: Limit;
}

export const defaultLimits: Limits = {
  key: { count: 600, seconds: 60 },
  team: { count: 3000, seconds: 60 },
  billing: { count: 120, seconds: 60 },
  anonymous: { count: 60, seconds: 60 },
  authFailures: { count: 20, seconds: 60 },
};

/** `count/seconds`, as the environment writes a limit. */
export const limitForm = /^([1-9]\d{0,8})\/([1-9]\d{0,4})$/;

/** Throws where the text is not of that form. */
export function parseLimit(text: string): Limit {
  const [, count, seconds] = limitForm.exec(text) ?? [];
  if (!count || !seconds) throw new Error(`A limit is written count/seconds, such as 600/60; this is none: ${text}`);
  return { count: Number(count), seconds: Number(seconds) };
}

/** A limit as a bucket with a name for the `RateLimit` headers. */
export interface Policy extends BucketSize {
  name: string;
}

/** A key may burst to 60 requests, whatever its rate. The other buckets hold their whole count. */
const keyBurst = 60;

export function policiesOf(limits: Limits): Record<keyof Limits, Policy> {
  const policy = (name: string, { count, seconds }: Limit, capacity = count): Policy => ({
    name,
    capacity,
    refillMs: (capacity / count) * seconds * 1000,
  });
  return {
    key: policy('key', limits.key, Math.min(keyBurst, limits.key.count)),
    team: policy('team', limits.team),
    billing: policy('billing', limits.billing),
    anonymous: policy('anonymous', limits.anonymous),
    authFailures: policy('auth-failures', limits.authFailures),
  };
}
