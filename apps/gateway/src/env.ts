import { IsIn, Matches } from 'class-validator';
import { IpWhitelist, whitelistEntries, WholeNumber } from '@atoll/contracts';
import { BusEnv, defaultPublicUrl, HttpEnv, KeyPepper, mostOfAny, PublicUrl, type Listener } from '@atoll/service';
import type { GatewayOptions, LimitStore } from './gateway-options.js';
import { defaultLimits, limitForm, parseLimit, type Limit, type Limits } from './rate-limits/limits.js';

const inWords = ({ count, seconds }: Limit): string => `${count}/${seconds}`;
const LimitText = (): PropertyDecorator =>
  Matches(limitForm, { message: '$property must be count/seconds, such as 600/60' });

/** Requests that are accepted at once after a pause. */
const Burst = (): PropertyDecorator => WholeNumber({ min: 1, max: mostOfAny, optional: true });

/** The settings of the gateway, in one process and over NATS alike. */
export class GatewayEnv {
  @KeyPepper()
  keyPepper: string = '';

  @PublicUrl()
  publicUrl: string = defaultPublicUrl;

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

  /** Requests of one user with the membership keys of all their teams, and of those they invited. */
  @LimitText()
  ATOLL_LIMIT_USER: string = inWords(defaultLimits.user);

  @Burst()
  ATOLL_LIMIT_USER_BURST: number | undefined = undefined;

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

/** What a gateway in a process of its own reads from its environment. */
export const gatewaySettings = [{ settings: BusEnv }, { settings: HttpEnv }, { settings: GatewayEnv }] as const;

/** Where the gateway listens. */
export function gatewayListeners({ PORT, HOST: host }: HttpEnv, { ATOLL_COMPAT_PORT }: GatewayEnv): Listener[] {
  const compat =
    ATOLL_COMPAT_PORT === undefined ? [] : [{ variable: 'ATOLL_COMPAT_PORT', port: ATOLL_COMPAT_PORT, host }];
  return [{ variable: 'PORT', port: PORT, host }, ...compat];
}

/** The part of the gateway's options that the environment decides. */
export function optionsFrom(
  env: GatewayEnv,
): Pick<GatewayOptions, 'keyPepper' | 'publicUrl' | 'trustedProxies' | 'limits' | 'limitStore' | 'drainDelayMs'> {
  return {
    keyPepper: env.keyPepper,
    publicUrl: env.publicUrl,
    trustedProxies: whitelistEntries(env.TRUSTED_PROXIES),
    limits: env.ATOLL_LIMITS === 'off' ? 'off' : limitsOf(env),
    limitStore: env.ATOLL_LIMIT_STORE,
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
    user: limit(env.ATOLL_LIMIT_USER, env.ATOLL_LIMIT_USER_BURST),
    team: limit(env.ATOLL_LIMIT_TEAM, env.ATOLL_LIMIT_TEAM_BURST),
    admin: limit(env.ATOLL_LIMIT_ADMIN, env.ATOLL_LIMIT_ADMIN_BURST),
    anonymous: limit(env.ATOLL_LIMIT_ANONYMOUS, env.ATOLL_LIMIT_ANONYMOUS_BURST),
    authFailures: limit(env.ATOLL_LIMIT_AUTH_FAILURES, env.ATOLL_LIMIT_AUTH_FAILURES_BURST),
  };
}
