import type { ConsumerMessages, JsMsg } from '@nats-io/jetstream';
import { Logger } from '@nestjs/common';
import type { EventConsumer } from './courier.js';
import { decodeEvent } from './event-message.js';

/** Hands the messages of one durable consumer to one `EventConsumer`, one after the other. */
export class JetStreamDelivery {
  readonly #logger = new Logger('Events');
  #messages: ConsumerMessages | undefined;
  #running: Promise<void> = Promise.resolve();
  #stopping = false;

  constructor(
    readonly consumer: EventConsumer,
    private readonly ackWaitMs: number,
  ) {}

  /** Reads from these messages once those read before are finished. `onEnd` is called when they end by themselves. */
  start(messages: ConsumerMessages, onEnd: () => void): void {
    this.pause();
    this.#messages = messages;
    this.#running = this.#running.then(async () => {
      await this.read(messages);
      if (this.#messages === messages) onEnd();
    });
  }

  /** Takes no new messages until it is started again. */
  pause(): void {
    this.#messages?.stop();
    this.#messages = undefined;
  }

  /** Takes no new messages for good and finishes the one in hand. The others go back at once. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.pause();
    await this.#running;
  }

  private async read(messages: ConsumerMessages): Promise<void> {
    if (this.#stopping) messages.stop();
    try {
      for await (const message of messages) {
        if (this.#stopping) message.nak();
        else await this.deliver(message);
      }
    } catch (error) {
      this.#logger.warn(`${this.consumer.name} hears no events for the moment: ${String(error)}`);
    }
  }

  private async deliver(message: JsMsg): Promise<void> {
    const event = decodeEvent(message.subject, message.string());
    if (!event) {
      this.#logger.error(`Message ${message.seq} on ${message.subject} is no event and is left aside.`);
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
