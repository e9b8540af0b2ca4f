import { IsIn, Matches, MinLength } from 'class-validator';
import { IpWhitelist, whitelistEntries, WholeNumber } from '@atoll/contracts';
import { BusEnv, defaultDeadlineMs, defaultPublicUrl, mostOfAny, PublicUrl, RequestDeadline } from '@atoll/service';
import type { GatewayOptions, LimitStore } from './gateway-options.js';
import { defaultLimits, limitForm, parseLimit, type Limit, type Limits } from './rate-limits/limits.js';

const inWords = ({ count, seconds }: Limit): string => `${count}/${seconds}`;
const LimitText = (): PropertyDecorator =>
  Matches(limitForm, { message: '$property must be count/seconds, such as 600/60' });

/** Of a gateway in a process of its own. */
export class GatewayProcessEnv extends BusEnv {
  /** The same as the teams service's. */
  @MinLength(16, { message: 'ATOLL_KEY_PEPPER must be at least 16 characters long' })
  ATOLL_KEY_PEPPER: string = '';
}

/** Requests that are accepted at once after a pause. */
const Burst = (): PropertyDecorator => WholeNumber({ min: 1, max: mostOfAny, optional: true });

/** The settings of the gateway, in one process and over NATS alike. */
export class GatewayEnv {
  /** Where people reach the platform. The same as the teams service's. */
  @PublicUrl()
  ATOLL_PUBLIC_URL: string = defaultPublicUrl;

  /** Comma-separated addresses and CIDRs of proxies whose `X-Forwarded-For` is trusted; default none. */
  @IpWhitelist()
  TRUSTED_PROXIES: string = '';

  /** `off` for benchmarks and tests. */
  @IsIn(['on', 'off'], { message: 'ATOLL_LIMITS must be on or off' })
  ATOLL_LIMITS: 'on' | 'off' = 'on';

  /** Requests of one member of a team, or of one user, with all their keys. */
  @LimitText()
  ATOLL_LIMIT_KEY: string = inWords(defaultLimits.key);

  @Burst()
  ATOLL_LIMIT_KEY_BURST: number | undefined = undefined;

  /** Requests of one member or user to the billing paths. */
  @LimitText()
  ATOLL_LIMIT_BILLING: string = inWords(defaultLimits.billing);

  @Burst()
  ATOLL_LIMIT_BILLING_BURST: number | undefined = undefined;

  /** Requests of all membership keys of one team. */
  @LimitText()
  ATOLL_LIMIT_TEAM: string = inWords(defaultLimits.team);

  @Burst()
  ATOLL_LIMIT_TEAM_BURST: number | undefined = undefined;

  /** Requests of one platform_admin, in place of the limits above. */
  @LimitText()
  ATOLL_LIMIT_ADMIN: string = inWords(defaultLimits.admin);

  @Burst()
  ATOLL_LIMIT_ADMIN_BURST: number | undefined = undefined;

  /** Requests without credentials from one address. */
  @LimitText()
  ATOLL_LIMIT_ANONYMOUS: string = inWords(defaultLimits.anonymous);

  @Burst()
  ATOLL_LIMIT_ANONYMOUS_BURST: number | undefined = undefined;

  /** Requests with credentials that are refused, from one address. */
  @LimitText()
  ATOLL_LIMIT_AUTH_FAILURES: string = inWords(defaultLimits.authFailures);

  @Burst()
  ATOLL_LIMIT_AUTH_FAILURES_BURST: number | undefined = undefined;

  /** `nats`: all replicas of the gateway count together. */
  @IsIn(['memory', 'nats'], { message: 'ATOLL_LIMIT_STORE must be memory or nats' })
  ATOLL_LIMIT_STORE: LimitStore = 'memory';

  /** How long a request may take before it is answered 504. */
  @RequestDeadline()
  ATOLL_DEADLINE_MS: number = defaultDeadlineMs;

  /**
   * How long requests are still taken at shutdown while `/readyz` says no. Behind a load balancer: as long as it takes
   * to notice.
   */
  @WholeNumber({ min: 0, max: 10_000, unit: 'milliseconds' })
  ATOLL_DRAIN_DELAY_MS: number = 0;

  /** Where the compatibility mount listens, for programs that speak older forms of the API; nowhere unless set. */
  @WholeNumber({ min: 1, max: 65_535, optional: true })
  ATOLL_COMPAT_PORT: number | undefined = undefined;
}

/** The part of the gateway's options that the environment decides. */
export function optionsFrom(
  env: GatewayEnv,
): Pick<GatewayOptions, 'publicUrl' | 'trustedProxies' | 'limits' | 'limitStore' | 'deadlineMs' | 'drainDelayMs'> {
  return {
    publicUrl: env.ATOLL_PUBLIC_URL,
    trustedProxies: whitelistEntries(env.TRUSTED_PROXIES),
    limits: env.ATOLL_LIMITS === 'off' ? 'off' : limitsOf(env),
    limitStore: env.ATOLL_LIMIT_STORE,
    deadlineMs: env.ATOLL_DEADLINE_MS,
    drainDelayMs: env.ATOLL_DRAIN_DELAY_MS,
  };
}

function limitsOf(env: GatewayEnv): Limits {
  const limit = (text: string, burst: number | undefined): Limit => ({
    ...parseLimit(text),
    ...(burst !== undefined && { burst }),
  });
  return {
    key: limit(env.ATOLL_LIMIT_KEY, env.ATOLL_LIMIT_KEY_BURST),
    billing: limit(env.ATOLL_LIMIT_BILLING, env.ATOLL_LIMIT_BILLING_BURST),
    team: limit(env.ATOLL_LIMIT_TEAM, env.ATOLL_LIMIT_TEAM_BURST),
    admin: limit(env.ATOLL_LIMIT_ADMIN, env.ATOLL_LIMIT_ADMIN_BURST),
    anonymous: limit(env.ATOLL_LIMIT_ANONYMOUS, env.ATOLL_LIMIT_ANONYMOUS_BURST),
    authFailures: limit(env.ATOLL_LIMIT_AUTH_FAILURES, env.ATOLL_LIMIT_AUTH_FAILURES_BURST),
  };
}
