import type { BroadcastType, CallContext, Caller, Operation } from '@atoll/contracts';
import { AppError, tooManyRequests } from '@atoll/errors';
import { remainingMs, Rpc, type JsonText, type Readiness } from '@atoll/rpc';
import { FairSemaphore, type Refused } from '@atoll/waiting';
import type { GatewaySettings } from '../gateway-options.js';
import { Lanes } from './lanes.js';

/**
 * Of the 16 connections that pods and gpuaas keep for requests two gateways leave some to others; and who keeps within
 * the limits needs no more.
 */
const callsAtOnce = 6;
/**
 * Of all teams together. The limit of each is not enough, since one user may make 200 teams, each with members. Three
 * gateways stay below the 1,000 calls at which a service refuses everybody.
 */
const callsOfAllAtOnce = 300;

/** The token of the way to other services without turns. */
export const directRpc = Symbol('direct rpc');

/** The way to one service. */
interface Way {
  /** What waits is bounded by the buckets that let it in. */
  readonly turns: FairSemaphore;
  readonly lanes: Lanes;
}

/**
 * The way to other services, on which calls of one team take turns: to each service 6 are under way at once from one
 * gateway, 300 of all teams together, and the rest wait here in the order in which they came. Whatever a team asks for
 * at once within its limits, a call of another team waits behind 6 of it and not behind all. The further calls of a
 * request go before the first ones of others and are refused by no wait, so that what it has begun it can end, or undo.
 * A request whose first call has waited for half of its deadline is refused: as `too_many_requests`, or as
 * `unavailable` where none of the others was answered meanwhile. The operator and services wait for nobody.
 */
export class FairRpc extends Rpc {
  /** By service. */
  readonly #ways = new Map<string, Way>();
  /** Those of requests that have made their first call: each request has an object of its own. */
  readonly #callers = new WeakSet<Caller>();

  constructor(
    private readonly direct: Rpc,
    private readonly settings: Pick<GatewaySettings, 'limits'>,
  ) {
    super();
  }

  override call<Input extends object, Output extends object>(
    operation: Operation<Input, Output>,
    input: Input,
    context: CallContext,
  ): Promise<Output> {
    return this.#inTurn(operation, context, () => this.direct.call(operation, input, context));
  }

  override callForJson<Input extends object>(
    operation: Operation<Input>,
    input: Input,
    context: CallContext,
  ): Promise<JsonText> {
    return this.#inTurn(operation, context, () => this.direct.callForJson(operation, input, context));
  }

  override publish<Payload extends object>(type: BroadcastType<Payload>, payload: Payload): void {
    this.direct.publish(type, payload);
  }

  override listen<Payload extends object>(
    type: BroadcastType<Payload>,
    listener: (payload: Payload) => void,
  ): () => void {
    return this.direct.listen(type, listener);
  }

  override status(): Readiness {
    return this.direct.status();
  }

  #wayTo(service: string): Way {
    const bounds = { permits: callsOfAllAtOnce, permitsPerKey: callsAtOnce };
    const way = this.#ways.get(service) ?? { turns: new FairSemaphore(bounds, refusal), lanes: new Lanes() };
    this.#ways.set(service, way);
    return way;
  }

  #inTurn<T>({ service }: Operation, context: CallContext, work: () => Promise<T>): Promise<T> {
    const { caller } = context;
    if (!this.settings.limits || caller.kind === 'system' || caller.platformAdmin) return work();
    const isUrgent = this.#callers.has(caller);
    this.#callers.add(caller);
    const patienceMs = remainingMs(context) / (isUrgent ? 1 : 2);
    const { turns, lanes } = this.#wayTo(service);
    return lanes.run(caller, (lane) => turns.run(work, { key: lane, isUrgent, patienceMs }));
  }
}

/** A service that hangs, or that others keep busy, is no fault of those who wait for it. */
function refusal({ isKeyFull, isStalled }: Refused): AppError {
  if (!isKeyFull)
    return new AppError('unavailable', 'Too many requests are being processed.', { retryAfterSeconds: 2 });
  return isStalled
    ? new AppError('unavailable', 'Earlier requests of your team, or of yours, are still being processed.', {
        retryAfterSeconds: 2,
      })
    : tooManyRequests(1);
}
