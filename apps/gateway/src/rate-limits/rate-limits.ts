import { Injectable, type ExecutionContext } from '@nestjs/common';
import type { Reflector } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import type { ThrottlerOptions, ThrottlerRequest } from '@nestjs/throttler';
import { holderOf, networkOf, type UserCaller } from '@atoll/contracts';
import { tooManyRequests } from '@atoll/errors';
import type { FastifyReply } from 'fastify';
import type { Buckets, Demand } from './buckets.js';
import { defaultLimits, policiesOf, type LimitName, type Limits } from './limits.js';
import { ThrottlerGuard } from './throttler.js';

/** What a request is counted as. */
type Counted =
  | { kind: 'caller'; caller: UserCaller; billing: boolean }
  | { kind: 'session'; sessionId: string; network: string }
  | { kind: 'anonymous'; network: string }
  | { kind: 'failure'; network: string };

/** The bucket of each limit from which a request takes a token; null if the limit does not apply to it. */
const holders: Record<LimitName, (counted: Counted) => string | null> = {
  key: (counted) => (isOrdinary(counted) ? memberOf(counted.caller) : null),
  billing: (counted) => (isOrdinary(counted) && counted.billing ? memberOf(counted.caller) : null),
  // A user may be in 200 teams, and have a key of each; and the keys of those invited to them, which count apart.
  user: (counted) => (isOrdinary(counted) && membershipOf(counted.caller) ? holderOf(counted.caller) : null),
  // Whoever has logged in often has many sessions, of which each counts by itself.
  team: (counted) => {
    if (counted.kind === 'session') return `sessions/${counted.network}`;
    return isOrdinary(counted) ? (membershipOf(counted.caller) ?? null) : null;
  },
  admin: (counted) => (counted.kind === 'caller' && counted.caller.platformAdmin ? counted.caller.userId : null),
  anonymous: (counted) => {
    if (counted.kind === 'session') return `session/${counted.sessionId}`;
    return counted.kind === 'anonymous' ? counted.network : null;
  },
  authFailures: (counted) => (counted.kind === 'failure' ? counted.network : null),
};

function isOrdinary(counted: Counted): counted is Counted & { kind: 'caller' } {
  return counted.kind === 'caller' && !counted.caller.platformAdmin;
}

function membershipOf({ scope, teams: [team] }: UserCaller): string | undefined {
  return scope === 'membership' ? team?.teamId : undefined;
}

/** A user in one team, or as a whole: a new key of the same member shares the bucket of the old one. */
function memberOf(caller: UserCaller): string {
  return `${membershipOf(caller) ?? 'user'}/${caller.userId}`;
}

/** The limits as throttlers: each says for which requests it holds, and whose bucket is asked. `null`: none holds. */
export function throttlersOf(limits: Limits | null): ThrottlerOptions[] {
  const policies = policiesOf(limits ?? defaultLimits);
  return (Object.keys(policies) as LimitName[]).map((limit) => {
    const { name, capacity, refillMs } = policies[limit];
    const holderIn = (context: ExecutionContext): string | null => holders[limit](countedIn(context));
    return {
      name,
      limit: capacity,
      ttl: refillMs,
      skipIf: (context) => limits === null || holderIn(context) === null,
      getTracker: (_request, context) => holderIn(context) ?? '',
      generateKey: (_context, holder, throttler) => `${throttler}:${holder}`,
    };
  });
}

/** The arguments of the guard's context: what is counted, and what was selected for it. */
type Arguments = [counted: Counted, demands: Demand[]];

function countedIn(context: ExecutionContext): Counted {
  return context.getArgs<Arguments>()[0];
}

/**
 * Takes a token of each bucket that a request falls under, or of none, and says in the headers what is left. The guard
 * of `@nestjs/throttler` selects the limits and their buckets; it is asked by the admission hook, since a guard of the
 * router sees neither unmatched routes nor malformed URLs, and they count too.
 */
@Injectable()
export class RateLimits extends ThrottlerGuard {
  /** There is no handler yet that could have limits of its own, and to search one for them would take its time. */
  protected override readonly reflector = { getAllAndOverride: () => undefined } as unknown as Reflector;

  /** A request without credentials. Throws `too_many_requests`, as all of these do. */
  async anonymous(address: string, reply: FastifyReply): Promise<void> {
    await this.#count({ kind: 'anonymous', network: networkOf(address) }, reply);
  }

  /**
   * A request to open a WebSocket by a ticket, which is no credential of the API. Returns what gives the token back:
   * for a ticket that was good.
   */
  async upgrade(address: string): Promise<() => Promise<void>> {
    const demands = await this.#count({ kind: 'anonymous', network: networkOf(address) });
    return () => this.#giveBack(demands);
  }

  /**
   * A refresh or a log-out, by the cookie of a session that is not looked at yet. Counted like requests without
   * credentials, but by session, since an office shares an address; and all those of an address like the members of one
   * team.
   */
  async session(sessionId: string, address: string, reply: FastifyReply): Promise<void> {
    await this.#count({ kind: 'session', sessionId, network: networkOf(address) }, reply);
  }

  async authenticated(caller: UserCaller, billing: boolean, reply: FastifyReply): Promise<void> {
    await this.#count({ kind: 'caller', caller, billing }, reply);
  }

  /** Takes the token of a failed authentication. Returns a function that gives it back and restores the headers. */
  async authFailure(network: string, reply: FastifyReply): Promise<() => Promise<void>> {
    const before = (['ratelimit-policy', 'ratelimit'] as const).map((name) => [name, reply.getHeader(name)] as const);
    const demands = await this.#count({ kind: 'failure', network }, reply);
    return async () => {
      for (const [name, value] of before) {
        if (value === undefined) reply.removeHeader(name);
        else reply.header(name, value);
      }
      await this.#giveBack(demands);
    };
  }

  async #giveBack(demands: readonly Demand[]): Promise<void> {
    for (const demand of demands) await this.#buckets.decrement(demand);
  }

  /** The guard itself sorts the limits by their times; they are shown in the order in which they are declared. */
  override async onModuleInit(): Promise<void> {
    const declared = (this.options as { throttlers: { name?: string }[] }).throttlers.map(({ name }) => name);
    await super.onModuleInit();
    this.throttlers.sort((one, other) => declared.indexOf(one.name) - declared.indexOf(other.name));
  }

  /** Called by the guard for each limit that holds for the request. */
  protected override async handleRequest(request: ThrottlerRequest): Promise<boolean> {
    const { context, throttler, limit, ttl, getTracker, generateKey } = request;
    const name = throttler.name ?? '';
    const key = generateKey(context, await getTracker({}, context), name);
    context.getArgs<Arguments>()[1].push({ name, key, capacity: limit, refillMs: ttl });
    return true;
  }

  /** Where there is no reply, as for a WebSocket, nobody is told what is left. */
  async #count(counted: Counted, reply?: FastifyReply): Promise<Demand[]> {
    const demands: Demand[] = [];
    await this.canActivate(new ExecutionContextHost([counted, demands] satisfies Arguments));
    if (demands.length > 0) await this.#take(demands, reply);
    return demands;
  }

  /** A refused request costs nothing, and is told the longest wait. */
  async #take(demands: readonly Demand[], reply?: FastifyReply): Promise<void> {
    const records = await this.#buckets.incrementAll(demands);
    const left = records.map(({ totalHits, timeToExpire }, at) => {
      const { name = '', capacity = 0 } = demands[at] ?? {};
      return `"${name}";r=${Math.max(0, capacity - totalHits)};t=${timeToExpire}`;
    });
    const policies = demands.map(
      ({ name, capacity, refillMs }) => `"${name}";q=${capacity};w=${Math.ceil(refillMs / 1000)}`,
    );
    reply?.header('ratelimit-policy', policies.join(', ')).header('ratelimit', left.join(', '));
    const waits = records.filter(({ isBlocked }) => isBlocked).map(({ timeToBlockExpire }) => timeToBlockExpire);
    if (waits.length > 0) {
      throw tooManyRequests(Math.max(1, ...waits));
    }
  }

  get #buckets(): Buckets {
    return this.storageService as Buckets;
  }
}
