import { headers, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import type { CallContext } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { remainingMs } from './call-context.js';
import { endOfTurn } from './end-of-turn.js';
import type { Answer } from './rpc-server.js';
import { answerTooLarge, maxReplyBytes, unreadableAnswer } from './wire.js';

/**
 * Answers on the reply inbox: a JSON text as it is; an error marked by a header, so that no answer can be taken for
 * one; whatever is longer than a part in numbered parts.
 */
const kindHeader = 'Atoll-Reply';
const partHeader = 'Atoll-Part';

/** A reply longer than this travels in parts of this length. */
const maxPartBytes = 512 * 1024;
/** What a message needs besides its payload. */
const headroomBytes = 1024;
/** After so many parts the sender waits until the receiver has them, so that NATS never has to buffer a whole long reply. */
const partsPerWindow = 4;

/** Marks a reply as a WireError. */
export const errorHeaders = headers();
errorHeaders.set(kindHeader, 'error');

/** Sends an answer, in parts if it must be. Throws where the receiver went away between two windows of parts. */
export async function sendReply(connection: NatsConnection, inbox: string, answer: Answer, context: CallContext): Promise<void> {
  const text = answer.error ? JSON.stringify(answer.error.toWire()) : answer.json;
  const partBytes = Math.min(maxPartBytes, (connection.info?.max_payload ?? maxPartBytes) - headroomBytes);
  const bytes = Buffer.from(text);
  if (bytes.length <= partBytes) {
    await endOfTurn();
    connection.publish(inbox, bytes, answer.error && { headers: errorHeaders });
    return;
  }
  const error = answerTooLarge(bytes.length);
  if (error) return sendReply(connection, inbox, { error }, context);
  const total = Math.ceil(bytes.length / partBytes);
  for (let number = 1; number <= total; number += 1) {
    const part = bytes.subarray((number - 1) * partBytes, number * partBytes);
    const marked = partHeaders(number, total, answer.error !== undefined);
    const windowEnds = number % partsPerWindow === 0 && number < total;
    if (windowEnds) await connection.request(inbox, part, { headers: marked, timeout: Math.max(1, remainingMs(context)) });
    else connection.publish(inbox, part, { headers: marked });
  }
}

function partHeaders(number: number, total: number, isError: boolean): MsgHdrs {
  const marked = headers();
  marked.set(partHeader, `${number}/${total}`);
  if (isError) marked.set(kindHeader, 'error');
  return marked;
}

/** Puts one reply together from its messages. */
export class ReplyAssembly {
  readonly #parts: Uint8Array[] = [];
  #bytes = 0;

  /** The answer, once the last part is here. Throws `internal` where parts are missing, or too much comes. */
  add(message: Msg): Answer | undefined {
    const part = message.headers?.get(partHeader);
    if (part && !this.#takePart(part, message)) return undefined;
    const text = part ? Buffer.concat(this.#parts).toString('utf8') : message.string();
    return message.headers?.get(kindHeader) === 'error' ? { error: readError(text) } : { json: text };
  }

  #takePart(part: string, message: Msg): boolean {
    const [number, total] = part.split('/').map(Number);
    this.#parts.push(message.data);
    this.#bytes += message.data.length;
    if (number !== this.#parts.length || this.#bytes > maxReplyBytes) throw unreadableAnswer();
    if (message.reply) message.respond();
    return number === total;
  }
}

function readError(text: string): AppError {
  try {
    return AppError.fromWire(JSON.parse(text));
  } catch {
    return unreadableAnswer();
  }
}
