import { Inject, Injectable } from '@nestjs/common';
import ipaddr from 'ipaddr.js';
import type { UserCaller } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import type { FastifyReply } from 'fastify';
import { GatewaySettings } from '../gateway-options.js';
import { bucketStore, type BucketRecord, type Buckets } from './bucket-record.js';
import { policiesOf, type Limits, type Policy } from './limits.js';

interface Demand {
  policy: Policy;
  /** Whose bucket. */
  holder: string;
}

/** How often may you: takes a token of each bucket that a request falls under, and tells in the headers what is left. */
@Injectable()
export class RateLimits {
  readonly #policies: Record<keyof Limits, Policy> | null;

  constructor(
    settings: GatewaySettings,
    @Inject(bucketStore) private readonly buckets: Buckets,
  ) {
    this.#policies = settings.limits && policiesOf(settings.limits);
  }

  /** A request without credentials. Throws `too_many_requests`, as all of these do. */
  async anonymous(address: string, reply: FastifyReply): Promise<void> {
    if (this.#policies) await this.#take([{ policy: this.#policies.anonymous, holder: networkOf(address) }], reply);
  }

  /** A request whose credentials were refused, or may not be used from there. */
  async authFailure(address: string, reply: FastifyReply): Promise<void> {
    if (this.#policies) await this.#take([{ policy: this.#policies.authFailures, holder: networkOf(address) }], reply);
  }

  async authenticated(caller: UserCaller, billing: boolean, reply: FastifyReply): Promise<void> {
    if (!this.#policies) return;
    const { key, team, billing: billingPolicy } = this.#policies;
    const demands: Demand[] = [{ policy: key, holder: caller.keyId }];
    if (billing) demands.push({ policy: billingPolicy, holder: caller.keyId });
    const [membership] = caller.scope === 'membership' ? caller.teams : [];
    if (membership) demands.push({ policy: team, holder: membership.teamId });
    await this.#take(demands, reply);
  }

  /** Of each bucket a token, or of none: what is refused costs nothing, and is told the longest wait. */
  async #take(demands: readonly Demand[], reply: FastifyReply): Promise<void> {
    const seen = demands.length > 1 ? await Promise.all(demands.map((demand) => this.#peek(demand))) : [];
    const records = seen.some(({ isBlocked }) => isBlocked) ? seen : await this.#increment(demands);
    const told = records.map(({ totalHits, timeToExpire }, at) => {
      const { name = '', capacity = 0 } = demands[at]?.policy ?? {};
      return `"${name}";r=${Math.max(0, capacity - totalHits)};t=${timeToExpire}`;
    });
    const policies = demands.map(({ policy: { name, capacity, refillMs } }) => `"${name}";q=${capacity};w=${Math.ceil(refillMs / 1000)}`);
    reply.header('ratelimit-policy', policies.join(', ')).header('ratelimit', told.join(', '));
    const waits = records.filter(({ isBlocked }) => isBlocked).map(({ timeToBlockExpire }) => timeToBlockExpire);
    if (waits.length > 0) {
      throw new AppError('too_many_requests', 'Too many requests. Please try again later.', { retryAfterSeconds: Math.max(1, ...waits) });
    }
  }

  #peek({ policy: { name, capacity, refillMs }, holder }: Demand): Promise<BucketRecord> {
    return this.buckets.peek(`${name}:${holder}`, refillMs, capacity);
  }

  /** The narrowest first. Others may have come in between: then the ones after it are not asked. */
  async #increment(demands: readonly Demand[]): Promise<BucketRecord[]> {
    const records: BucketRecord[] = [];
    for (const { policy, holder } of demands) {
      const { name, capacity, refillMs } = policy;
      const record = await this.buckets.increment(`${name}:${holder}`, refillMs, capacity, 0, name);
      records.push(record);
      if (record.isBlocked) break;
    }
    return records;
  }
}

/** An IPv4 address, or the /64 an IPv6 address lies in: whoever has one address of it has them all. */
function networkOf(address: string): string {
  if (!ipaddr.IPv6.isValid(address)) return address;
  return ipaddr.IPv6.networkAddressFromCIDR(`${address}/64`).toString();
}
