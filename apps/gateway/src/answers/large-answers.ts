import { Injectable, StreamableFile } from '@nestjs/common';
import type { CallContext, Operation } from '@atoll/contracts';
import { Rpc } from '@atoll/rpc';
import { Parts } from './parts.js';
import { UnreadAnswers } from './unread-answers.js';

/** What a controller returns of an answer that came over the bus as JSON, on a route with `AnswersJson`. */
export type PassedOn = string | Uint8Array | StreamableFile;

/** Calls whose answers may be long: they are passed on as the JSON that came. */
@Injectable()
export class LargeAnswers {
  constructor(
    private readonly rpc: Rpc,
    private readonly unread: UnreadAnswers,
  ) {}

  /** Throws what the call throws; without calling, `too_many_requests` or `unavailable` where too much is unread. */
  async passOn<Input extends object>(
    operation: Operation<Input>,
    input: NoInfer<Input>,
    context: CallContext,
  ): Promise<PassedOn> {
    this.unread.requireRoom(context.caller);
    const json = await this.rpc.callForJson(operation, input, context);
    if (typeof json === 'string') return json;
    const [only, ...others] = json;
    if (only && others.length === 0) return only;
    const parts = new Parts(json);
    return new StreamableFile(parts, { length: parts.length });
  }

  /** A listing that is whole unless `limit` is sent: the whole may be long, and is passed on as it comes. */
  async allOrPage<Input extends { limit?: number }, Output extends object>(
    operation: Operation<Input, Output>,
    input: NoInfer<Input>,
    context: CallContext,
  ): Promise<Output | PassedOn> {
    return input.limit === undefined
      ? this.passOn(operation, input, context)
      : this.rpc.call(operation, input, context);
  }
}
