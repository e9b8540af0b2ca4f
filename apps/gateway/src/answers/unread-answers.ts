import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { holderOf, type Caller } from '@atoll/contracts';
import { AppError, tooManyRequests } from '@atoll/errors';
import { Parts } from './parts.js';

const mebibyte = 1024 * 1024;
/** Characters or bytes; what is longer is sent in parts, and counts while it is unread. */
const longAnswer = 64 * 1024;
const retryAfterSeconds = 5;

/** How much of long answers callers may leave unread, since it is in memory until they read it. */
export class UnreadLimits {
  /** Bytes of one team, and of one user in whatever teams. */
  ofOne = 64 * mebibyte;
  /** Bytes of all. */
  ofAll = 256 * mebibyte;
  /** A caller who reads nothing for so long is cut off. */
  patienceMs = 30_000;
  /** Where all have left too much unread, a caller who has been at an answer for so long may be cut off. */
  slowMs = 5_000;
}

/** A long answer that was not read to its end. */
interface Unread {
  /** For whom it counts. */
  readonly readers: readonly string[];
  readonly sinceMs: number;
  readonly cutOff: () => void;
  bytes: number;
}

/** Every answer from when it is sent until it is read or its connection is gone. */
@Injectable()
export class UnreadAnswers {
  private readonly unread = new Set<Unread>();

  constructor(private readonly limits: UnreadLimits) {}

  /**
   * Throws `too_many_requests` where the caller’s team or user has left too much unread. Where all have, slow ones make
   * room, those of whoever has the most unread first; throws `unavailable` where that would not be enough, and cuts off
   * none.
   */
  requireRoom(caller: Caller): void {
    const { ofOne, ofAll, slowMs } = this.limits;
    const isOver = readersOf(caller).some((one) => this.bytes(({ readers }) => readers.includes(one)) >= ofOne);
    if (isOver) throw tooManyRequests(retryAfterSeconds);
    const all = this.bytes();
    if (all < ofAll) return;
    const isSlow = ({ sinceMs }: Unread) => performance.now() - sinceMs >= slowMs;
    const atStake = this.bytes(isSlow);
    if (all - atStake >= ofAll)
      throw new AppError('unavailable', 'Too many large responses are being read.', { retryAfterSeconds });
    this.cutOff([...this.unread].filter(isSlow), all - ofAll);
  }

  /** Cuts off answers with more than so many bytes, and none without which that would be enough. */
  private cutOff(slow: readonly Unread[], bytes: number): void {
    const byPerson = new Map<string, number>();
    const has = ({ readers: [person = ''] }: Unread) => byPerson.get(person) ?? 0;
    for (const one of this.unread) byPerson.set(one.readers[0] ?? '', has(one) + one.bytes);
    const chosen: Unread[] = [];
    let free = 0;
    for (const one of slow.toSorted((a, b) => has(b) - has(a) || b.bytes - a.bytes)) {
      if (free > bytes) break;
      free += one.bytes;
      chosen.push(one);
    }
    for (const one of chosen.toSorted((a, b) => a.bytes - b.bytes)) {
      if (free - one.bytes > bytes) free -= one.bytes;
      else {
        this.unread.delete(one);
        one.cutOff();
      }
    }
  }

  private bytes(isCounted: (unread: Unread) => boolean = () => true): number {
    return [...this.unread].filter(isCounted).reduce((sum, { bytes }) => sum + bytes, 0);
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
    const unread: Unread = {
      readers: caller ? readersOf(caller) : [],
      sinceMs: performance.now(),
      cutOff: () => request.raw.socket.destroy(),
      bytes: answer.length,
    };
    if (caller) this.unread.add(unread);
    this.cutOffUnlessRead(reply, (isOver) => {
      unread.bytes = answer.unsent;
      if (isOver) this.unread.delete(unread);
    });
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
}

function inParts(payload: unknown): unknown {
  if (typeof payload === 'string') return payload.length > longAnswer ? new Parts([Buffer.from(payload)]) : payload;
  return payload instanceof Uint8Array && payload.length > longAnswer ? new Parts([payload]) : payload;
}

/** The team of a key to one team, and whoever is behind the key. */
function readersOf(caller: Caller): string[] {
  if (caller.kind !== 'user') return [caller.service];
  const ofOneTeam = caller.scope === 'membership' ? caller.teams : [];
  return [holderOf(caller), ...ofOneTeam.map(({ teamId }) => teamId)];
}
