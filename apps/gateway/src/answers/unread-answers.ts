import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '@atoll/contracts';
import { AppError, tooManyRequests } from '@atoll/errors';
import { Parts } from './parts.js';

const mebibyte = 1024 * 1024;
/** Characters or bytes; what is longer is sent in parts, and counts while it is unread. */
const longAnswer = 64 * 1024;
const retryAfterSeconds = 5;

/** How much of long answers callers may leave unread, since it is in memory until they read it. */
export class UnreadLimits {
  /** Bytes of one team, or of one user who acts for no team. */
  ofOne = 64 * mebibyte;
  /** Bytes of all. */
  ofAll = 256 * mebibyte;
  /** A caller who reads nothing for so long is cut off. */
  patienceMs = 30_000;
}

/** Every answer from when it is sent until it is read or its connection is gone. */
@Injectable()
export class UnreadAnswers {
  /** Bytes by reader. */
  private readonly unread = new Map<string, number>();

  constructor(private readonly limits: UnreadLimits) {}

  /** Throws `too_many_requests` where the caller’s team has left too much unread, and `unavailable` where all have. */
  requireRoom(caller: Caller): void {
    if ((this.unread.get(readerOf(caller)) ?? 0) >= this.limits.ofOne) throw tooManyRequests(retryAfterSeconds);
    const all = [...this.unread.values()].reduce((sum, bytes) => sum + bytes, 0);
    if (all >= this.limits.ofAll)
      throw new AppError('unavailable', 'Too many large responses are being read.', { retryAfterSeconds });
  }

  /**
   * Watches an answer that is about to be sent, and returns it in the form in which it is sent: in parts where it is
   * long. A client that reads nothing of it is cut off. A long one counts for its caller; what is long and public is
   * in memory once for all, and counts for nobody. Throws as `requireRoom` where a long one answers a GET: any other
   * call may have changed something, and its caller must learn of it.
   */
  send(request: FastifyRequest, reply: FastifyReply, payload: unknown): unknown {
    // Its client has hung up, and nothing will tell of the end of it.
    if (reply.raw.destroyed) return payload;
    const answer = request.method === 'HEAD' ? payload : inParts(payload);
    if (!(answer instanceof Parts)) {
      this.cutOffUnlessRead(reply);
      return answer;
    }
    const { caller, method } = request;
    // Others may have come since it was asked for. Who leaves much unread has this one thrown away, and asks again.
    if (caller && method === 'GET') this.requireRoom(caller);
    const count = caller ? this.counterOf(readerOf(caller)) : undefined;
    count?.(answer.length);
    this.cutOffUnlessRead(reply, (isOver) => count?.(isOver ? 0 : answer.unsent));
    reply.header('content-length', answer.length);
    return answer;
  }

  /** Calls `onRead` whenever the connection has taken all that it was given, and once when the answer is over. */
  cutOffUnlessRead({ raw }: Pick<FastifyReply, 'raw'>, onRead: (isOver: boolean) => void = () => undefined): void {
    // Where requests came one behind the other, a response has no socket before its turn, and its time begins then.
    let hasTurn = raw.socket !== null;
    const timer = setTimeout(() => {
      if (hasTurn) raw.destroy();
      else timer.refresh();
      hasTurn = raw.socket !== null;
    }, this.limits.patienceMs).unref();
    raw.on('drain', () => {
      timer.refresh();
      onRead(false);
    });
    raw.once('close', () => {
      clearTimeout(timer);
      onRead(true);
    });
  }

  /** Sets how many bytes of one answer the reader has not read. */
  private counterOf(reader: string): (bytes: number) => void {
    let counted = 0;
    return (bytes) => {
      const sum = (this.unread.get(reader) ?? 0) + bytes - counted;
      counted = bytes;
      if (sum > 0) this.unread.set(reader, sum);
      else this.unread.delete(reader);
    };
  }
}

function inParts(payload: unknown): unknown {
  if (typeof payload === 'string') return payload.length > longAnswer ? new Parts([Buffer.from(payload)]) : payload;
  return payload instanceof Uint8Array && payload.length > longAnswer ? new Parts([payload]) : payload;
}

function readerOf(caller: Caller): string {
  if (caller.kind !== 'user') return caller.service;
  const [membership] = caller.scope === 'membership' ? caller.teams : [];
  return membership?.teamId ?? caller.userId;
}
