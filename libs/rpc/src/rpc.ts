import type { BroadcastType, CallContext, Operation } from '@atoll/contracts';
import type { JsonText } from './json.js';

/** Whether something can do its work now, for `/readyz`. */
export interface Readiness {
  ready: boolean;
  /** Why not, in words for an operator. */
  reason?: string;
}

/** The way to other services. Injected by this class; which transport is behind it, the module decides. */
export abstract class Rpc {
  /**
   * Asks the service that owns the operation. Throws the AppError that the service threw, or `unavailable` (nobody
   * answers for it, the way there is cut, or it is of an older release that does not know a field), `deadline_exceeded`
   * (no answer until `context.deadlineAtMs`), `payload_too_large` (the input is), `internal` (a bug on either side).
   */
  abstract call<Input extends object, Output extends object>(
    operation: Operation<Input, Output>,
    input: Input,
    context: CallContext,
  ): Promise<Output>;

  /**
   * As `call`, and gives the answer's JSON as it came: for those who only pass it on, and answers of megabytes. A long
   * one is in parts.
   */
  abstract callForJson<Input extends object>(
    operation: Operation<Input>,
    input: Input,
    context: CallContext,
  ): Promise<JsonText>;

  /** Tells every process that listens now. May be lost; throws nothing. */
  abstract publish<Payload extends object>(type: BroadcastType<Payload>, payload: Payload): void;

  /** Hears broadcasts, this process's own included, until the returned function is called. */
  abstract listen<Payload extends object>(
    type: BroadcastType<Payload>,
    listener: (payload: Payload) => void,
  ): () => void;

  /** Whether calls can be made now. */
  abstract status(): Readiness;
}
