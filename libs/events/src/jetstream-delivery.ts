import type { Signer } from '@atoll/rpc';
import { ThrottledLog, withPatience } from '@atoll/waiting';
import type { ConsumerMessages, JsMsg } from '@nats-io/jetstream';
import type { Subscription } from '@nats-io/transport-node';
import { Logger } from '@nestjs/common';
import type { EventConsumer } from './courier.js';
import { openEvent } from './event-seal.js';

const reasons = {
  forged: 'no ATOLL_BUS_SECRET of this process signed it',
  unreadable: 'it is not an event',
};

/** A frozen server is not waited for any longer; it delivers again what is not acknowledged. */
const drainTimeoutMs = 2_000;

/** Hands the messages of one durable consumer to one `EventConsumer`, one after the other. */
export class JetStreamDelivery {
  readonly #logger = new Logger('Events');
  readonly #refused = new ThrottledLog(({ message }) => this.#logger.error(message));
  #messages: ConsumerMessages | undefined;
  #running: Promise<void> = Promise.resolve();
  #stopping = false;
  #unsignedUpTo = 0;

  constructor(
    readonly consumer: EventConsumer,
    private readonly signer: Signer,
    private readonly ackWaitMs: number,
  ) {}

  /**
   * Reads from these messages once those read before are finished; those up to this sequence may be unsigned. `onEnd`
   * is called when they end by themselves.
   */
  start(messages: ConsumerMessages, unsignedUpTo: number, onEnd: () => void): void {
    this.pause();
    this.#messages = messages;
    this.#running = this.#running.then(async () => {
      this.#unsignedUpTo = unsignedUpTo;
      await this.read(messages);
      if (this.#messages === messages) onEnd();
    });
  }

  /** Takes no new messages until it is started again. */
  pause(): void {
    this.#messages?.stop();
    this.#messages = undefined;
  }

  /**
   * Takes no new messages for good and finishes the one in hand. The others go back at once, those too that the server
   * has sent and that have not arrived yet. Those that a pause has dropped, or that a start which comes after is sent,
   * are delivered again when `ackWaitMs` is over.
   */
  async stop(): Promise<void> {
    this.#stopping = true;
    await this.drain();
    this.pause();
    await this.#running;
  }

  /**
   * The client's own `stop` drops what arrives after it, and the server would wait for it to be acknowledged. The
   * subscription is no part of the client's interface: without it, messages wait so.
   */
  private async drain(): Promise<void> {
    const messages: (ConsumerMessages & { readonly sub?: Subscription }) | undefined = this.#messages;
    const drained = messages?.sub?.drain().catch(() => undefined);
    if (drained) await withPatience(drained, drainTimeoutMs, undefined);
  }

  private async read(messages: ConsumerMessages): Promise<void> {
    if (this.#stopping) messages.stop();
    try {
      for await (const message of messages) {
        if (this.#stopping) message.nak();
        else await this.deliver(message);
      }
    } catch (error) {
      this.#logger.warn(`${this.consumer.name} receives no events; retrying: ${String(error)}`);
    }
  }

  private async deliver(message: JsMsg): Promise<void> {
    const event = openEvent(this.signer, message, message.seq <= this.#unsignedUpTo);
    if (typeof event === 'string') {
      this.#refused.log(event, {
        message: `Message ${message.seq} on ${message.subject} is ignored: ${reasons[event]}.`,
      });
      return message.term();
    }
    if (!this.consumer.eventNames.includes(event.name)) return message.ack();
    const stillAtIt = setInterval(() => message.working(), this.ackWaitMs / 3);
    try {
      const outcome = await this.consumer.take(event, message.info.deliveryCount);
      if (outcome === 'done') message.ack();
      else message.nak(outcome.retryAfterMs);
    } finally {
      clearInterval(stillAtIt);
    }
  }
}
