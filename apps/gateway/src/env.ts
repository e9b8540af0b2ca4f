import { Type } from 'class-transformer';
import { IsIn, IsInt, Matches, Max, Min, MinLength } from 'class-validator';
import { IpWhitelist, whitelistEntries } from '@atoll/contracts';
import { BusEnv } from '@atoll/service';
import type { GatewayOptions, LimitStore } from './gateway-options.js';
import { defaultLimits, limitForm, parseLimit, type Limit } from './rate-limits/limits.js';

const inWords = ({ count, seconds }: Limit): string => `${count}/${seconds}`;
const LimitText = (): PropertyDecorator => Matches(limitForm, { message: '$property must be count/seconds, such as 600/60' });

/** Of a gateway in a process of its own. */
export class GatewayProcessEnv extends BusEnv {
  /** The same as the teams service's. */
  @MinLength(16, { message: 'ATOLL_KEY_PEPPER must be at least 16 characters long' })
  ATOLL_KEY_PEPPER: string = '';
}

/** What an operator can say about the gateway, in one process and over NATS alike. */
export class GatewayEnv {
  /** Comma-separated addresses and CIDRs of proxies whose `X-Forwarded-For` is believed; nobody's unless set. */
  @IpWhitelist()
  TRUSTED_PROXIES: string = '';

  /** `off` for benchmarks and tests. */
  @IsIn(['on', 'off'], { message: 'ATOLL_LIMITS must be on or off' })
  ATOLL_LIMITS: 'on' | 'off' = 'on';

  /** Requests of one API key, with bursts of up to 60. */
  @LimitText()
  ATOLL_LIMIT_KEY: string = inWords(defaultLimits.key);

  /** Requests of all membership keys of one team. */
  @LimitText()
  ATOLL_LIMIT_TEAM: string = inWords(defaultLimits.team);

  /** Requests of one API key to the billing paths. */
  @LimitText()
  ATOLL_LIMIT_BILLING: string = inWords(defaultLimits.billing);

  /** Requests without credentials from one address. */
  @LimitText()
  ATOLL_LIMIT_ANONYMOUS: string = inWords(defaultLimits.anonymous);

  /** Requests with credentials that are refused, from one address. */
  @LimitText()
  ATOLL_LIMIT_AUTH_FAILURES: string = inWords(defaultLimits.authFailures);

  /** `nats`: all replicas of the gateway count together. */
  @IsIn(['memory', 'nats'], { message: 'ATOLL_LIMIT_STORE must be memory or nats' })
  ATOLL_LIMIT_STORE: LimitStore = 'memory';

  /** How long a request may take before it is answered 504. */
  @Type(() => Number)
  @IsInt({ message: 'ATOLL_DEADLINE_MS must be whole milliseconds' })
  @Min(100)
  @Max(300_000)
  ATOLL_DEADLINE_MS: number = 5_000;

  /** How long requests are still taken at shutdown while `/readyz` says no. Behind a load balancer: as long as it takes to notice. */
  @Type(() => Number)
  @IsInt({ message: 'ATOLL_DRAIN_DELAY_MS must be whole milliseconds' })
  @Min(0)
  @Max(10_000)
  ATOLL_DRAIN_DELAY_MS: number = 0;
}

/** The part of the gateway's options that the environment decides. */
export function optionsFrom(
  env: GatewayEnv,
): Pick<GatewayOptions, 'trustedProxies' | 'limits' | 'limitStore' | 'deadlineMs' | 'drainDelayMs'> {
  return {
    trustedProxies: whitelistEntries(env.TRUSTED_PROXIES),
    limits:
      env.ATOLL_LIMITS === 'off'
        ? 'off'
        : {
            key: parseLimit(env.ATOLL_LIMIT_KEY),
            team: parseLimit(env.ATOLL_LIMIT_TEAM),
            billing: parseLimit(env.ATOLL_LIMIT_BILLING),
            anonymous: parseLimit(env.ATOLL_LIMIT_ANONYMOUS),
            authFailures: parseLimit(env.ATOLL_LIMIT_AUTH_FAILURES),
          },
    limitStore: env.ATOLL_LIMIT_STORE,
    deadlineMs: env.ATOLL_DEADLINE_MS,
    drainDelayMs: env.ATOLL_DRAIN_DELAY_MS,
  };
}
