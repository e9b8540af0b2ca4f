import { headers, type Msg, type MsgHdrs, type NatsConnection } from '@nats-io/transport-node';
import type { CallContext } from '@atoll/contracts';
import { AppError } from '@atoll/errors';
import { remainingMs } from './call-context.js';
import { endOfTurn } from './end-of-turn.js';
import { byteLengthOf, textOf } from './json.js';
import { signatureHeader, signatureOf } from './nats-envelope.js';
import { newInbox, readerOf } from './nats-inbox.js';
import type { Answer } from './rpc-server.js';
import type { AnswerKind, SignedAnswer, Signer } from './signature.js';
import { answerTooLarge, maxReplyBytes, unreadableAnswer } from './wire.js';

/**
 * Answers on the reply inbox: a JSON text as it is; an error marked by a header, so that no answer can be taken for
 * one; whatever is longer than a part in numbered parts. Each message is signed, see `SignedAnswer`.
 */
const kindHeader = 'Atoll-Reply';
const partHeader = 'Atoll-Part';
/** Of an answer in one message. */
const wholePart = '1/1';

/** A reply longer than this travels in parts of this length. */
const maxPartBytes = 512 * 1024;
/** What a message needs besides its payload. */
const headroomBytes = 1024;
/**
 * After so many parts the sender waits until the receiver has them, so that NATS never has to buffer a whole long
 * reply.
 */
const partsPerWindow = 4;

/** What an answer belongs to. */
export interface Asked {
  /** Reply inbox of the request. */
  inbox: string;
  /** Signature of the request. */
  signature: string;
  context: CallContext;
}

/** Sends the answers of one service. */
export class ReplySender {
  constructor(
    private readonly service: string,
    private readonly signer: Signer,
  ) {}

  /** Sends a response, in parts if it is large. Throws if the receiver disappeared between two windows of parts. */
  async send(connection: NatsConnection, asked: Asked, answer: Answer): Promise<void> {
    const kind: AnswerKind = answer.error ? 'error' : 'json';
    const json = answer.error ? JSON.stringify(answer.error.toWire()) : answer.json;
    const pieces = typeof json === 'string' ? [Buffer.from(json)] : json;
    const partBytes = Math.min(maxPartBytes, (connection.info?.max_payload ?? maxPartBytes) - headroomBytes);
    if (byteLengthOf(pieces) > partBytes) return this.#sendParts(connection, asked, kind, pieces, partBytes);
    const bytes = Buffer.concat(pieces);
    const signed: SignedAnswer = { service: this.service, kind, part: wholePart, reply: '', previous: asked.signature };
    const marked = marks(signed, this.signer.signAnswer(signed, bytes));
    await endOfTurn();
    connection.publish(asked.inbox, bytes, { headers: marked });
  }

  /** One part in a turn of the event loop, since each is copied and signed. */
  async #sendParts(
    connection: NatsConnection,
    asked: Asked,
    kind: AnswerKind,
    pieces: readonly Uint8Array[],
    partBytes: number,
  ): Promise<void> {
    const bytes = byteLengthOf(pieces);
    const error = answerTooLarge(bytes);
    if (error) return this.send(connection, asked, { error });
    const { inbox, context } = asked;
    const total = Math.ceil(bytes / partBytes);
    let previous = asked.signature;
    let number = 0;
    for (const payload of partsOf(pieces, partBytes)) {
      number += 1;
      const windowEnds = number % partsPerWindow === 0 && number < total;
      const reply = windowEnds ? `${newInbox(this.service)}.${readerOf(inbox)}.receipt` : '';
      const signed: SignedAnswer = { service: this.service, kind, part: `${number}/${total}`, reply, previous };
      previous = this.signer.signAnswer(signed, payload);
      const marked = marks(signed, previous);
      const timeout = Math.max(1, remainingMs(context));
      if (windowEnds) await connection.request(inbox, payload, { headers: marked, timeout, noMux: true, reply });
      else connection.publish(inbox, payload, { headers: marked });
      await endOfTurn();
    }
  }
}

/** The same bytes in parts of `partBytes`, but for the last. */
function* partsOf(pieces: readonly Uint8Array[], partBytes: number): Generator<Uint8Array> {
  let part: Uint8Array[] = [];
  let missing = partBytes;
  for (const piece of pieces) {
    let rest = piece;
    while (rest.length >= missing) {
      yield Buffer.concat([...part, rest.subarray(0, missing)]);
      rest = rest.subarray(missing);
      part = [];
      missing = partBytes;
    }
    part.push(rest);
    missing -= rest.length;
  }
  if (missing < partBytes) yield Buffer.concat(part);
}

/** The headers of a message of an answer. */
export function marks({ kind, part }: SignedAnswer, signature: string): MsgHdrs {
  const marked = headers();
  marked.set(signatureHeader, signature);
  if (kind === 'error') marked.set(kindHeader, kind);
  if (part !== wholePart) marked.set(partHeader, part);
  return marked;
}

/**
 * Puts the answer to one request together from its messages, and takes only those that the owner of the operation
 * signed for it.
 */
export class ReplyAssembly {
  readonly #parts: Uint8Array[] = [];
  #bytes = 0;
  #total: string | undefined;
  #previous: string;

  /** `service` owns the operation; `requestSignature` is what the answer is bound to. */
  constructor(
    private readonly signer: Signer,
    private readonly service: string,
    requestSignature: string,
  ) {
    this.#previous = requestSignature;
  }

  /**
   * The answer, once its last part is here. `refused` is what is not the next part of this answer, signed by the owner:
   * it is forged, altered, copied or out of order, and changes nothing. Throws `internal` where a genuine answer is
   * larger than allowed.
   */
  add(message: Msg): Answer | 'incomplete' | 'refused' {
    const kind = message.headers?.get(kindHeader) === 'error' ? 'error' : 'json';
    const part = message.headers?.get(partHeader) || wholePart;
    const [number = '', total = ''] = part.split('/');
    const isNext = number === String(this.#parts.length + 1) && total === (this.#total ?? total);
    if (!isNext || !this.#verify({ kind, part }, message)) return 'refused';
    this.#total = total;
    this.#parts.push(message.data);
    this.#bytes += message.data.length;
    if (this.#bytes > maxReplyBytes) throw unreadableAnswer();
    if (message.reply) message.respond();
    if (number !== total) return 'incomplete';
    const json = part === wholePart ? message.string() : this.#parts;
    return kind === 'error' ? { error: readError(textOf(json)) } : { json };
  }

  #verify(claimed: Pick<SignedAnswer, 'kind' | 'part'>, message: Msg): boolean {
    const signature = signatureOf(message);
    const signed: SignedAnswer = {
      ...claimed,
      service: this.service,
      reply: message.reply ?? '',
      previous: this.#previous,
    };
    if (!this.signer.verifyAnswer(signed, message.data, signature)) return false;
    this.#previous = signature;
    return true;
  }
}

function readError(text: string): AppError {
  try {
    return AppError.fromWire(JSON.parse(text));
  } catch {
    return unreadableAnswer();
  }
}
