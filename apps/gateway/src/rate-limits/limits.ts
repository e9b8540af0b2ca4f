import type { BucketSize } from './token-bucket.js';

/** A number of requests in a number of seconds, in the long run. */
export interface Limit {
  count: number;
  seconds: number;
  /** Requests that are accepted at once after a pause; see `policiesOf` for the default. */
  burst?: number;
}

export interface Limits {
  /** Per member of a team, or per user: whatever the number of their keys. */
  key: Limit;
  /** Per member or user, on the billing paths; in addition to `key`. */
  billing: Limit;
  /**
   * Per user, over the membership keys in all their teams, in addition to `key`; and apart from these over the keys of
   * invited people that the user was shown.
   */
  user: Limit;
  /** Per team, over all its membership keys, in addition to `key`; and per address, over the cookies of sessions. */
  team: Limit;
  /** Per platform_admin, in place of `key`, `billing` and `team`. */
  admin: Limit;
  /** Per address, of requests without credentials; and per session, of those by its cookie. */
  anonymous: Limit;
  /** Per address, of requests whose credentials are refused. */
  authFailures: Limit;
}

export type LimitName = keyof Limits;

export const defaultLimits: Limits = {
  key: { count: 600, seconds: 60 },
  billing: { count: 120, seconds: 60 },
  user: { count: 3000, seconds: 60 },
  team: { count: 3000, seconds: 60 },
  admin: { count: 6000, seconds: 60 },
  anonymous: { count: 60, seconds: 60 },
  authFailures: { count: 20, seconds: 60 },
};

/** `count/seconds`, as the environment writes a limit. */
export const limitForm = /^([1-9]\d{0,8})\/([1-9]\d{0,4})$/;

/** Throws where the text does not have that form. */
export function parseLimit(text: string): Limit {
  const [, count, seconds] = limitForm.exec(text) ?? [];
  if (!count || !seconds) throw new Error(`Invalid limit "${text}": expected count/seconds, such as 600/60.`);
  return { count: Number(count), seconds: Number(seconds) };
}

/** A limit as a bucket with a name for the `RateLimit` headers. */
export interface Policy extends BucketSize {
  name: string;
}

/** The burst of `key`, unless set: ten times less than its minute, so that one script cannot use it up at once. */
const keyBurst = 60;
/** What ten keys may ask for at once. */
const userBurst = 10 * keyBurst;

/**
 * The buckets of the limits. A bucket holds its limit's burst: 60 for `key`, 600 for `user`, the whole count for the
 * others, unless set.
 */
export function policiesOf(limits: Limits): Record<LimitName, Policy> {
  const policy = (name: string, { count, seconds, burst = count }: Limit): Policy => ({
    name,
    capacity: burst,
    refillMs: (burst / count) * seconds * 1000,
  });
  const { key, user } = limits;
  return {
    key: policy('key', { burst: Math.min(keyBurst, key.count), ...key }),
    billing: policy('billing', limits.billing),
    user: policy('user', { burst: Math.min(userBurst, user.count), ...user }),
    team: policy('team', limits.team),
    admin: policy('admin', limits.admin),
    anonymous: policy('anonymous', limits.anonymous),
    authFailures: policy('auth-failures', limits.authFailures),
  };
}
