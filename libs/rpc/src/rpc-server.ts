import { Logger } from '@nestjs/common';
import { Server, type CustomTransportStrategy, type MessageHandler } from '@nestjs/microservices';
import { isObservable, lastValueFrom } from 'rxjs';
import { validateWire, type CallContext, type Operation } from '@atoll/contracts';
import { AppError, isAppError, rootOf } from '@atoll/errors';
import { ThrottledLog, withPatience } from '@atoll/waiting';
import type { JsonText } from './json.js';
import type { Readiness } from './rpc.js';
import { encodeAnswer, internalMessage } from './wire.js';

export interface RpcServerOptions {
  /** The service's name, which is its queue group too. */
  service: string;
  /** Most concurrent requests; further ones fail with `unavailable`. Default 1,000. */
  maxInFlight?: number;
  /**
   * Turns an error that the service did not throw on purpose (a lost database) into one for callers; otherwise it is
   * `internal`.
   */
  mapError?: (error: unknown) => AppError | undefined;
  /**
   * Handles a call that came over the network so that what it changes is changed once, also where copies of it reach
   * several replicas. Resolves with undefined for a copy, which is not answered. Without it, each replica refuses the
   * copies that it sees itself.
   */
  handleOnce?: <T>(call: SignedCall, handle: () => Promise<T>) => Promise<T | undefined>;
}

/** Identifies a call over the network: its signature, and its expiry. */
interface SignedCall {
  nonce: string;
  /** Epoch milliseconds. */
  deadlineAtMs: number;
}

/** What came in, from a caller that may be believed. */
export interface Request {
  payload: string;
  context: CallContext;
  /** Signature of a request that came over the network, where it may have been copied. */
  nonce?: string;
}

/** How long a drain waits for requests in flight: less than orchestrators wait before they kill. */
const defaultDrainMs = 10_000;

/** What goes back to a caller. */
export type Answer = { json: JsonText; error?: never } | { error: AppError; json?: never };

/**
 * The receiving half of the bus, which does not depend on what carries it: validation, the handler, errors, shedding,
 * drain.
 */
export abstract class RpcServer extends Server implements CustomTransportStrategy {
  protected override readonly logger = new Logger(RpcServer.name);
  readonly #maxInFlight: number;
  readonly #mapError: (error: unknown) => AppError | undefined;
  readonly #outages = new ThrottledLog((line) => this.logger.warn(line));
  #inFlight = 0;
  #idle: (() => void)[] = [];

  protected constructor(protected readonly options: RpcServerOptions) {
    super();
    if (!options.service)
      throw new Error('A service needs a name: it is the NATS queue group that its replicas share.');
    this.#maxInFlight = options.maxInFlight ?? 1000;
    this.#mapError = options.mapError ?? (() => undefined);
  }

  /**
   * Ready while every operation is subscribed and nothing drains. (`status` is taken: Nest's Server has an observable
   * of that name.)
   */
  abstract readiness(): Readiness;

  /** Takes no new requests and waits for those in flight, at most `timeoutMs` (10 s). May be called again. */
  async drain(timeoutMs = defaultDrainMs): Promise<void> {
    const outcome = await withPatience(this.finish(), timeoutMs, 'late' as const);
    if (outcome !== 'late') return;
    const requests = this.#inFlight === 1 ? '1 request is' : `${this.#inFlight} requests are`;
    this.logger.warn(`${requests} still in flight after ${timeoutMs} ms; stopping without them.`);
  }

  override addHandler(
    pattern: unknown,
    handler: MessageHandler,
    isEventHandler = false,
    extras: Record<string, unknown> = {},
  ): void {
    const subject = String(pattern);
    const operation = extras['operation'] as Operation | undefined;
    if (!operation) throw new Error(`The handler of ${subject} must be declared with @Handle.`);
    if (operation.service !== this.options.service)
      throw new Error(`${subject} does not belong to the service ${this.options.service}.`);
    if (this.messageHandlers.has(subject)) throw new Error(`${subject} has two handlers.`);
    super.addHandler(subject, handler, isEventHandler, extras);
  }

  /** Nest's events of a transport; this one reports by `readiness()`. */
  override on(): void {}

  override unwrap<T>(): T {
    throw new Error('The transport of libs/rpc cannot be unwrapped.');
  }

  async close(): Promise<void> {
    await this.drain();
  }

  /**
   * Handles one request and hands its answer to `respond`; what `respond` does counts as in flight too. `respond` gets
   * undefined for a copy of a request, which has no answer. Never throws.
   */
  protected async serve(
    handler: MessageHandler,
    request: Request,
    respond: (answer: Answer | undefined) => Promise<void> | void,
  ): Promise<void> {
    const { context } = request;
    const full = this.#inFlight >= this.#maxInFlight;
    this.#inFlight += 1;
    try {
      await respond(full ? { error: overloaded() } : await this.#answer(handler, request));
    } catch (error) {
      this.logger.error({ message: `The response could not be sent: ${String(error)}`, request_id: context.requestId });
    } finally {
      this.#inFlight -= 1;
      if (this.#inFlight === 0) this.#idle.splice(0).forEach((resolve) => resolve());
    }
  }

  async #answer(handler: MessageHandler, { payload, context, nonce }: Request): Promise<Answer | undefined> {
    const { handleOnce } = this.options;
    const { operation } = handler.extras as { operation: Operation };
    try {
      const input = validateWire(operation.input, parse(payload));
      const handle = async (): Promise<JsonText> => {
        const result: unknown = await handler(input, context);
        return encodeAnswer(isObservable(result) ? await lastValueFrom(result) : result);
      };
      const mayBeCopied = nonce !== undefined && handleOnce !== undefined;
      const json = mayBeCopied
        ? await handleOnce({ nonce, deadlineAtMs: context.deadlineAtMs }, handle)
        : await handle();
      return json === undefined ? undefined : { json };
    } catch (error) {
      return { error: this.#toAppError(error, operation, context) };
    }
  }

  /** Takes no new requests; resolves when nothing is in flight and every answer is on its way. */
  protected abstract finish(): Promise<void>;

  protected idle(): Promise<void> {
    return this.#inFlight === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  #toAppError(error: unknown, { subject }: Operation, { requestId }: CallContext): AppError {
    const mapped = isAppError(error) ? error : this.#map(error);
    const told = mapped ?? new AppError('internal', internalMessage);
    const root = rootOf(error);
    const line = { message: `${subject} failed: ${String(root)}`, request_id: requestId };
    if (told.code === 'internal') this.logger.error(line, error instanceof Error ? error.stack : undefined);
    else if (told.code === 'unavailable' && root !== told) this.#outages.log(subject, line);
    else if (told !== error) this.logger.warn(line);
    return told;
  }

  #map(error: unknown): AppError | undefined {
    try {
      return this.#mapError(error);
    } catch {
      return undefined;
    }
  }
}

function overloaded(): AppError {
  return new AppError('unavailable', 'The service is overloaded.', { retryAfterSeconds: 1 });
}

function parse(payload: string): unknown {
  try {
    return JSON.parse(payload);
  } catch {
    throw new AppError('internal', 'The request could not be read.');
  }
}
