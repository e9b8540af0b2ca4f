import { Injectable, StreamableFile } from '@nestjs/common';
import type { CallContext, Operation } from '@atoll/contracts';
import { Rpc, type JsonText } from '@atoll/rpc';
import type { FastifyReply } from 'fastify';
import { pageLinks, paginationOfJson } from './page-links.js';
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

  /** Throws what the call throws; `too_many_requests` or `unavailable`, without calling, where too much is unread. */
  async passOn<Input extends object>(
    operation: Operation<Input>,
    input: NoInfer<Input>,
    context: CallContext,
  ): Promise<PassedOn> {
    return passedOn(await this.ask(operation, input, context));
  }

  /** A page whose entries may be large, passed on as it comes, with its links. Throws as `passOn`. */
  async page<Input extends object>(
    operation: Operation<Input>,
    input: NoInfer<Input>,
    context: CallContext,
    reply: FastifyReply,
  ): Promise<PassedOn> {
    const json = await this.ask(operation, input, context);
    const pagination = paginationOfJson(json);
    const { raw, routeOptions } = reply.request;
    if (pagination) reply.header('link', pageLinks(raw.url ?? '', pagination, routeOptions.config.firstPage ?? 0));
    return passedOn(json);
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

  private ask(operation: Operation, input: object, context: CallContext): Promise<JsonText> {
    this.unread.requireRoom(context.caller);
    return this.rpc.callForJson(operation, input, context);
  }
}

/** What came as JSON, in the form in which a controller returns it. */
export function passedOn(json: JsonText): PassedOn {
  if (typeof json === 'string') return json;
  const [only, ...others] = json;
  if (only && others.length === 0) return only;
  const parts = new Parts(json);
  return new StreamableFile(parts, { length: parts.length });
}
