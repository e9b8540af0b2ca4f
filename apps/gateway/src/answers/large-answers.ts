import { Readable } from 'node:stream';
import { Injectable, StreamableFile } from '@nestjs/common';
import type { CallContext, Caller, Operation } from '@atoll/contracts';
import { AppError, tooManyRequests } from '@atoll/errors';
import type { JsonText, Rpc } from '@atoll/rpc';

/** What a controller returns of an answer that came over the bus as JSON, on a route with `AnswersJson`. */
export type PassedOn = string | Uint8Array | StreamableFile;

const mebibyte = 1024 * 1024;

/** How much of long answers callers may leave unread, since it is in memory until they read it. */
export class UnreadLimits {
  /** Bytes of one team, or of one user who acts for no team. */
  ofOne = 64 * mebibyte;
  /** Bytes of all. */
  ofAll = 256 * mebibyte;
  /** A caller who reads nothing for so long is cut off. */
  patienceMs = 30_000;
}

/** Passes long answers on part by part, at the speed at which they are read. */
@Injectable()
export class LargeAnswers {
  /** Bytes by reader. */
  private readonly unread = new Map<string, number>();

  constructor(private readonly limits: UnreadLimits) {}

  /** Throws `too_many_requests` where the caller’s team has left too much unread, and `unavailable` where all have. */
  requireRoom(caller: Caller): void {
    const details = { retryAfterSeconds: 5 };
    if ((this.unread.get(readerOf(caller)) ?? 0) >= this.limits.ofOne) {
      throw tooManyRequests(details.retryAfterSeconds);
    }
    const all = [...this.unread.values()].reduce((sum, bytes) => sum + bytes, 0);
    if (all >= this.limits.ofAll)
      throw new AppError('unavailable', 'Too many large responses are being read.', details);
  }

  /** A listing that is whole unless `limit` is sent: the whole may be long, and is passed on as it comes. */
  async allOrPage<Input extends { limit?: number }, Output extends object>(
    rpc: Rpc,
    operation: Operation<Input, Output>,
    input: NoInfer<Input>,
    context: CallContext,
  ): Promise<Output | PassedOn> {
    if (input.limit !== undefined) return rpc.call(operation, input, context);
    this.requireRoom(context.caller);
    return this.passOn(await rpc.callForJson(operation, input, context), context.caller);
  }

  /** Throws as `requireRoom` where the answer is long. */
  passOn(json: JsonText, caller: Caller): PassedOn {
    const [only = '', ...others] = typeof json === 'string' ? [json] : json;
    if (typeof json === 'string' || others.length === 0) return only;
    // Others may have come since it was asked for. Who leaves much unread has this one thrown away, and asks again.
    this.requireRoom(caller);
    const reader = readerOf(caller);
    const count = (bytes: number) => {
      const sum = (this.unread.get(reader) ?? 0) + bytes;
      if (sum > 0) this.unread.set(reader, sum);
      else this.unread.delete(reader);
    };
    const answer = new UnreadAnswer(json, this.limits.patienceMs, count);
    return new StreamableFile(answer, { length: answer.length });
  }
}

/** The rest of a response; calls `count` with the bytes that are added and read. */
class UnreadAnswer extends Readable {
  readonly length: number;
  private left: number;
  private next = 0;
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly parts: readonly Uint8Array[],
    patienceMs: number,
    private readonly count: (bytes: number) => void,
  ) {
    super();
    this.length = this.left = parts.reduce((sum, part) => sum + part.length, 0);
    count(this.left);
    this.timer = setTimeout(() => this.destroy(), patienceMs).unref();
  }

  override _read(): void {
    this.timer.refresh();
    const part = this.parts[this.next] ?? null;
    this.next += 1;
    this.release(part?.length ?? 0);
    this.push(part);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearTimeout(this.timer);
    this.release(this.left);
    done(error);
  }

  private release(bytes: number): void {
    this.left -= bytes;
    if (bytes > 0) this.count(-bytes);
  }
}

function readerOf(caller: Caller): string {
  if (caller.kind !== 'user') return caller.service;
  const [membership] = caller.scope === 'membership' ? caller.teams : [];
  return membership?.teamId ?? caller.userId;
}
