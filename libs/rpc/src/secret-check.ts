import { Logger } from '@nestjs/common';
import { ThrottledLog } from '@atoll/waiting';
import type { Msg } from '@nats-io/transport-node';
import { remainingMs, systemContext } from './call-context.js';
import { open, seal, signatureOf } from './nats-envelope.js';
import { newInbox, readerOfNewInbox, writerOf } from './nats-inbox.js';
import type { LinkSubscription, NatsLink } from './nats-link.js';
import { marks } from './nats-reply.js';
import { Signer, type Secrets, type SignedAnswer } from './signature.js';

const subject = 'hello';
interface Pace {
  /** How long answers are awaited, in milliseconds; each service that runs sends one. */
  answerWindowMs: number;
  /** Between two questions at least, in milliseconds. */
  everyMs: number;
}
const usualPace: Pace = { answerWindowMs: 500, everyMs: 5_000 };

/**
 * Finds out whether this process shares a secret with the others, since it would otherwise only look as if they were
 * away. It asks all services at once, of which one replica each answers, signed. A process is at fault where others
 * answer and none of another service shares its secret; where only some of them share it, they are. Nothing can be
 * proven by a message that does not verify, so what somebody without the secret sends makes no process unready that has
 * one peer.
 */
export class SecretCheck {
  readonly #logger = new Logger(SecretCheck.name);
  readonly #errors = new ThrottledLog((line) => this.#logger.error(line));
  readonly #signer: Signer;
  readonly #subscription: LinkSubscription;
  readonly #forgetUp: () => void;
  #reason: string | null = 'other processes have not answered yet whether they share ATOLL_BUS_SECRET';
  #question: Question | undefined;
  #askedAtMs = -Infinity;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly link: NatsLink,
    secret: Secrets,
    private readonly pace = usualPace,
  ) {
    this.#signer = new Signer(secret);
    this.#subscription = link.subscribe(subject, link.name, (message) => this.#answer(message));
    this.#forgetUp = link.onUp(() => this.ask());
  }

  /** Why this process cannot work with the others; null where it can, or is the only one. */
  reason(): string | null {
    return this.#reason;
  }

  /** Asks the others, at once or 5 s after the last time. */
  ask(): void {
    if (this.#question ?? this.#timer) return;
    this.#timer = setTimeout(
      () => this.#ask(),
      Math.max(0, this.#askedAtMs + this.pace.everyMs - performance.now()),
    ).unref();
  }

  async close(): Promise<void> {
    this.#forgetUp();
    clearTimeout(this.#timer);
    this.#question?.end();
    await this.#subscription.drain();
  }

  #ask(): void {
    this.#timer = undefined;
    const { connection } = this.link;
    // It is asked again once NATS is there.
    if (!connection) return;
    this.#askedAtMs = performance.now();
    const inbox = newInbox(this.link.name);
    const sealed = seal(
      this.#signer,
      subject,
      inbox,
      systemContext(this.link.name, { deadlineMs: this.pace.answerWindowMs }),
      '',
    );
    const answers = this.link.subscribe(`${inbox}.*.*`, undefined, (message) => this.#hear(message, sealed.signature));
    const window = setTimeout(() => this.#conclude(), this.pace.answerWindowMs).unref();
    const end = (): void => {
      clearTimeout(window);
      void answers.drain();
      this.#question = undefined;
    };
    this.#question = { strangers: new Set(), end };
    connection.publish(subject, '', { reply: inbox, headers: sealed.headers });
  }

  /** Answers every question: the signature tells the asker whether the secrets match. */
  #answer(message: Msg): void {
    const asker = readerOfNewInbox(message.reply);
    if (asker === undefined) return;
    const opened = open(this.#signer, message);
    if (!opened) {
      this.#errors.log('asked', { message: `A process of ${asker} ${hasOtherSecret}` });
      this.ask();
    } else if (remainingMs(opened.context) > 0 && asker !== this.link.name) {
      this.#settle(null);
    }
    const signed = answerOf(this.link.name, signatureOf(message));
    const headers = marks(signed, this.#signer.signAnswer(signed, empty));
    this.link.connection?.publish(`${message.reply}.${this.link.name}.hello`, empty, { headers });
  }

  #hear(message: Msg, question: string): void {
    const peer = writerOf(message.subject);
    if (peer === this.link.name || message.headers?.hasError) return;
    if (this.#signer.verifyAnswer(answerOf(peer, question), message.data, signatureOf(message))) this.#settle(null);
    else this.#question?.strangers.add(peer);
  }

  #conclude(): void {
    const strangers = [...(this.#question?.strangers ?? [])].toSorted();
    if (strangers.length === 0) return this.#settle(null);
    const names = strangers.slice(0, maxNames).join(', ');
    this.#errors.log('asking', { message: `Every process that answered, of ${names}, ${hasOtherSecret}` });
    this.#settle(`ATOLL_BUS_SECRET differs from that of ${names}`);
    this.ask();
  }

  #settle(reason: string | null): void {
    this.#question?.end();
    this.#reason = reason;
  }
}

interface Question {
  /** Services of which a process answered that does not share a secret. */
  readonly strangers: Set<string>;
  readonly end: () => void;
}

const hasOtherSecret =
  'signs with another ATOLL_BUS_SECRET than this process; neither hears the calls of the other. Set the same one everywhere.';
const empty = new Uint8Array();
const maxNames = 10;

/** The signed content of an answer: only who answers which question. */
function answerOf(service: string, question: string): SignedAnswer {
  return { service, kind: 'json', part: '1/1', reply: '', previous: question };
}
