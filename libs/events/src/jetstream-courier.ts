import { setTimeout as delay } from 'node:timers/promises';
import { Signer, type NatsLink, type Secrets } from '@atoll/rpc';
import { jetstream, JetStreamApiError } from '@nats-io/jetstream';
import { errors, type NatsConnection } from '@nats-io/transport-node';
import { Logger } from '@nestjs/common';
import {
  CourierAway,
  type Courier,
  type CourierLink,
  type DomainEvent,
  type EventConsumer,
  type Outcome,
  type StreamUsage,
  type UnsignedCut,
} from './courier.js';
import { sealEvent } from './event-seal.js';
import { JetStreamDelivery } from './jetstream-delivery.js';
import { durableName, setUp, type JetStreamSettings } from './jetstream-setup.js';
import { StreamMonitor } from './stream-monitor.js';

/** The stream of the events of all services, unless given. */
export const eventStream = 'ATOLL_EVENTS';

const defaults: JetStreamSettings = {
  stream: eventStream,
  duplicateWindowMs: 2 * 60_000,
  ackWaitMs: 30_000,
  checkEveryMs: 10_000,
};

/** Messages that a process holds ahead of a consumer. */
const readAhead = 16;
const pullExpiresMs = 5_000;
const publishTimeoutMs = 5_000;
const connectionPollMs = 100;
const setUpPauseMs = 1_000;

/** Without a memory of older releases. */
const nothingUnsigned: UnsignedCut = { upTo: () => Promise.resolve(0) };

/** Status of the server's errors from which on the stream or the server is at fault, and not the event. */
const serverFault = 500;

/** Errors of a publish that concern the courier, and not the event. */
const awayErrors = [
  CourierAway,
  errors.TimeoutError,
  errors.RequestError,
  errors.ConnectionError,
  errors.ClosedConnectionError,
  errors.DrainingConnectionError,
];

/**
 * Delivers over NATS JetStream: one file-backed stream for all services, a durable consumer for each consumer. The
 * stream keeps what a consumer has not acknowledged, up to its limit in bytes; then publishing waits in the outbox.
 * JetStream acknowledges before it has the event on disk, so it carries events, and PostgreSQL keeps them.
 *
 * Events are signed, and refused where their publisher did not sign them. The owner of the NATS link closes it.
 */
export class JetStreamCourier implements Courier {
  readonly #link: NatsLink;
  readonly #signer: Signer;
  readonly #settings: JetStreamSettings;

  constructor(options: { link: NatsLink; secret: Secrets } & Partial<JetStreamSettings>) {
    const { link, secret, ...settings } = options;
    this.#link = link;
    this.#signer = new Signer(secret);
    this.#settings = { ...defaults, ...settings };
  }

  join(service: string, consumers: readonly EventConsumer[], onReady: () => void, cut = nothingUnsigned): CourierLink {
    return new JetStreamLink({
      link: this.#link,
      signer: this.#signer,
      settings: this.#settings,
      service,
      consumers,
      onReady,
      cut,
    });
  }
}

interface LinkOptions {
  readonly link: NatsLink;
  readonly signer: Signer;
  readonly settings: JetStreamSettings;
  readonly service: string;
  readonly consumers: readonly EventConsumer[];
  readonly onReady: () => void;
  readonly cut: UnsignedCut;
}

class JetStreamLink implements CourierLink {
  readonly #logger = new Logger('Events');
  readonly #deliveries: JetStreamDelivery[];
  readonly #closing = new AbortController();
  readonly #forgetDown: () => void;
  readonly #monitor: StreamMonitor;
  readonly #checks: NodeJS.Timeout;
  #isChecking = false;
  #checksFail = false;
  #ready = false;
  #setUpDue = false;
  #delivering = true;
  #isSettingUp = false;

  constructor(private readonly options: LinkOptions) {
    const { link, signer, settings, consumers } = options;
    this.#deliveries = consumers.map((consumer) => new JetStreamDelivery(consumer, signer, settings.ackWaitMs));
    this.#monitor = new StreamMonitor(settings.stream);
    this.#checks = setInterval(() => void this.check(), settings.checkEveryMs).unref();
    this.#forgetDown = link.onDown(() => this.recover());
    this.recover();
  }

  get streamUsage(): StreamUsage | undefined {
    return this.#monitor.usage;
  }

  async publish(event: DomainEvent): Promise<Outcome> {
    const { link, signer, service } = this.options;
    const { connection } = link;
    if (!connection || !this.#ready) throw new CourierAway('JetStream is not set up');
    try {
      const { subject, text, headers } = sealEvent(signer, service, event);
      await this.unlessDown(
        jetstream(connection).publish(subject, text, { msgID: event.id, headers, timeout: publishTimeoutMs }),
      );
      return 'done';
    } catch (error) {
      if (error instanceof JetStreamApiError && error.status >= serverFault) {
        void this.check();
        throw new CourierAway(`the event stream rejects events: ${error.message}`, { cause: error });
      }
      // Nobody takes the subject, which the client tells as a cause: the stream is gone.
      const streamGone = (error as Error).cause instanceof errors.RequestError;
      if (streamGone) this.recover();
      else if (!awayErrors.some((kind) => error instanceof kind)) throw error;
      throw new CourierAway(`JetStream does not answer: ${String(error)}`, { cause: error });
    }
  }

  status(): { ready: boolean; reason?: string } {
    return this.#ready ? { ready: true } : { ready: false, reason: 'JetStream is not set up for events' };
  }

  async stopDelivering(): Promise<void> {
    this.#delivering = false;
    await Promise.all(this.#deliveries.map((delivery) => delivery.stop()));
  }

  async close(): Promise<void> {
    this.#ready = false;
    clearInterval(this.#checks);
    this.#closing.abort();
    this.#forgetDown();
    await this.stopDelivering();
  }

  /** Not ready until stream and consumers are set up on the present connection. Retries without limit. */
  private recover(): void {
    if (this.#closing.signal.aborted) return;
    this.#ready = false;
    this.#setUpDue = true;
    for (const delivery of this.#deliveries) delivery.pause();
    if (!this.#isSettingUp) void this.keepSettingUp();
  }

  private async keepSettingUp(): Promise<void> {
    this.#isSettingUp = true;
    for (let told = false; this.#setUpDue && !this.#closing.signal.aborted;) {
      const { connection } = this.options.link;
      if (!connection) {
        await this.pause(connectionPollMs);
        continue;
      }
      this.#setUpDue = false;
      try {
        await this.unlessDown(this.setUp(connection));
      } catch (error) {
        if (!told) this.#logger.warn(`JetStream setup failed; retrying: ${String(error)}`);
        told = true;
        this.#setUpDue = true;
        await this.pause(this.options.link.connection ? setUpPauseMs : connectionPollMs);
      }
    }
    this.#isSettingUp = false;
    if (this.#closing.signal.aborted) return;
    this.#ready = true;
    this.options.onReady();
  }

  private async setUp(connection: NatsConnection): Promise<void> {
    const { service, consumers, settings, cut } = this.options;
    const { stream } = settings;
    const unsignedUpTo = await cut.upTo(await setUp(connection, service, consumers, settings));
    if (!this.#delivering) return;
    for (const delivery of this.#deliveries) {
      const source = await jetstream(connection).consumers.get(stream, durableName(service, delivery.consumer));
      const messages = await source.consume({
        max_messages: readAhead,
        expires: pullExpiresMs,
        abort_on_missing_resource: true,
      });
      delivery.start(messages, unsignedUpTo, () => void this.pause(setUpPauseMs).then(() => this.recover()));
    }
  }

  /** Looks how full the stream is, unless a look is under way. */
  private async check(): Promise<void> {
    const { connection } = this.options.link;
    if (!connection || !this.#ready || this.#isChecking) return;
    this.#isChecking = true;
    try {
      await this.unlessDown(this.#monitor.check(connection));
      this.#checksFail = false;
    } catch (error) {
      if (!this.#checksFail && this.#ready)
        this.#logger.warn(`Cannot check how full the event stream is; retrying: ${String(error)}`);
      this.#checksFail = true;
    }
    this.#isChecking = false;
  }

  /** What is under way when the connection breaks is not answered any more. */
  private unlessDown<T>(work: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const forget = this.options.link.onDown(() => reject(new CourierAway('the connection to NATS broke')));
      void work.then(resolve, reject).finally(forget);
    });
  }

  private async pause(pauseMs: number): Promise<void> {
    await delay(pauseMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }
}
