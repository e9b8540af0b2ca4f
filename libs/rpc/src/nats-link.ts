import { setTimeout as delay } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { ThrottledLog, withPatience } from '@atoll/waiting';
import {
  AuthorizationError,
  connect,
  type ConnectionOptions,
  type Msg,
  type NatsConnection,
  type Subscription,
} from '@nats-io/transport-node';
import { parseAddresses } from './nats-address.js';
import { inboxPrefix } from './nats-inbox.js';
import type { Readiness } from './rpc.js';

export interface NatsLinkOptions {
  /** `host:port` or `nats://user:password@host:port`, one or several of a cluster. */
  servers: string | string[];
  /**
   * The service: names the connection on the server's monitoring pages, and the inboxes it reads. `nameless` unless
   * given.
   */
  name?: string;
  /** Between two attempts to connect; 500 ms unless given. */
  reconnectWaitMs?: number;
  /** How long a start waits for the first connection before it goes on without, not ready; 5 s unless given. */
  startupWaitMs?: number;
  /** Credentials that no address can hold, and TLS. */
  connection?: Pick<ConnectionOptions, 'user' | 'pass' | 'token' | 'authenticator' | 'tls'>;
}

/** A frozen server is noticed after two pings without an answer. */
const pingIntervalMs = 5_000;

/**
 * Lines of the configuration of every nats-server: a client that is frozen leaves its queue groups within 20 s,
 * and other replicas get the requests. By the server's own defaults that takes up to eight minutes.
 */
export const natsPings = `ping_interval: "${pingIntervalMs / 1000}s"\nping_max: 2\n`;
const handshakeTimeoutMs = 5_000;
const flushTimeoutMs = 2_000;

/** A subscription that is made again after every outage, and made late where there is no connection yet. */
export interface LinkSubscription {
  /** False once the server refused it or it was closed. */
  isLive(): boolean;
  /** Takes no new messages; resolves when the last one that was under way has been delivered. */
  drain(): Promise<void>;
}

interface Interest {
  subject: string;
  queue: string | undefined;
  receive: (message: Msg) => void;
  live?: Subscription;
}

/**
 * The one connection of a process to NATS, for calls, handlers and JetStream alike. Connects in the background and
 * reconnects for ever; nothing is buffered while NATS is away. Whoever opens a link closes it.
 */
export class NatsLink {
  readonly #logger = new Logger(NatsLink.name);
  readonly #refusals = new ThrottledLog(({ message }) => this.#logger.error(message));
  readonly #interests = new Set<Interest>();
  readonly #upListeners = new Set<() => void>();
  readonly #downListeners = new Set<() => void>();
  readonly #stop = new AbortController();
  readonly #first: Promise<NatsConnection | undefined>;
  #connection: NatsConnection | undefined;
  #up = false;
  /** That NATS refused the last attempt to connect. */
  #refusal: string | undefined;

  private constructor(private readonly options: NatsLinkOptions) {
    this.#first = this.#connect(parseAddresses(options.servers));
  }

  /** Starts to connect. Throws for an invalid address, but not if NATS is unavailable. */
  static open(options: NatsLinkOptions): NatsLink {
    return new NatsLink(options);
  }

  /** The service that this connection belongs to. */
  get name(): string {
    return this.options.name ?? 'nameless';
  }

  /** The connection; undefined while NATS is unavailable. */
  get connection(): NatsConnection | undefined {
    return this.#up ? this.#connection : undefined;
  }

  /**
   * Resolves with the connection once it stood for the first time. It stays the same object through outages. Throws
   * when the link is closed before.
   */
  async connected(): Promise<NatsConnection> {
    const connection = await this.#first;
    if (!connection) throw new Error('The NATS link was closed before it was connected.');
    return connection;
  }

  /** Resolves when connected, or when a start should not wait any longer: then NATS is awaited in the background. */
  async settled(): Promise<void> {
    const { startupWaitMs = 5_000 } = this.options;
    await withPatience(this.#first, startupWaitMs, undefined);
  }

  /**
   * Hears a subject through all outages; those with the same `queue` share its messages. What `receive` throws is
   * logged.
   */
  subscribe(subject: string, queue: string | undefined, receive: (message: Msg) => void): LinkSubscription {
    const interest: Interest = { subject, queue, receive };
    this.#interests.add(interest);
    if (this.#connection) this.#subscribe(interest, this.#connection);
    return {
      isLive: () => interest.live !== undefined && !interest.live.isClosed() && !interest.live.isDraining(),
      drain: async () => {
        this.#interests.delete(interest);
        const { live } = interest;
        // Where it is closed already, or NATS is away, nothing is under way.
        if (this.connection) await live?.drain().catch(() => undefined);
        else live?.unsubscribe();
      },
    };
  }

  /** Called when the connection stands, the first time and after each outage. Returns the way to stop. */
  onUp(listener: () => void): () => void {
    this.#upListeners.add(listener);
    if (this.#up) listener();
    return () => this.#upListeners.delete(listener);
  }

  /** Called when the connection is lost, each time. Returns the way to stop. */
  onDown(listener: () => void): () => void {
    this.#downListeners.add(listener);
    return () => this.#downListeners.delete(listener);
  }

  /**
   * Resolves when the server has received everything published so far; at once while NATS is unavailable, and after 2 s
   * if it is frozen.
   */
  async flush(): Promise<void> {
    const flushed = this.connection?.flush().catch(() => undefined);
    if (flushed) await withPatience(flushed, flushTimeoutMs, undefined);
  }

  /** Not ready while NATS is away or refuses the log-in; a frozen server is noticed within 15 s. */
  status(): Readiness {
    return this.connection ? { ready: true } : { ready: false, reason: this.#refusal ?? 'NATS is not connected' };
  }

  /** Flushes published messages and closes. Pending calls fail with `unavailable`. */
  async close(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    await this.flush();
    this.#fall();
    await this.#connection?.close();
    await this.#first;
  }

  async #connect(addresses: ConnectionOptions): Promise<NatsConnection | undefined> {
    const { reconnectWaitMs = 500, connection: credentials } = this.options;
    const options: ConnectionOptions = {
      ...addresses,
      ...credentials,
      name: this.name,
      inboxPrefix: inboxPrefix(this.name),
      maxReconnectAttempts: -1,
      ignoreAuthErrorAbort: true,
      reconnectTimeWait: reconnectWaitMs,
      reconnectJitter: reconnectWaitMs / 5,
      timeout: handshakeTimeoutMs,
      pingInterval: pingIntervalMs,
      noAsyncTraces: true,
    };
    let isTold = false;
    for (let attempt = 1; !this.#stop.signal.aborted; attempt += 1) {
      try {
        const connection = await this.#adopt(await connect(options));
        if (attempt > 1) this.#logger.log('Connected to NATS.');
        return connection;
      } catch (error) {
        if (isRefusal(error)) this.#refuse();
        else {
          this.#refusal = undefined;
          if (!isTold) this.#logger.warn(`Cannot connect to NATS; retrying: ${String(error)}`);
          isTold = true;
        }
        await delay(reconnectWaitMs, undefined, { signal: this.#stop.signal }).catch(() => undefined);
      }
    }
    return undefined;
  }

  async #adopt(connection: NatsConnection): Promise<NatsConnection | undefined> {
    if (this.#stop.signal.aborted) {
      await connection.close();
      return undefined;
    }
    this.#connection = connection;
    for (const interest of this.#interests) this.#subscribe(interest, connection);
    this.#rise();
    void this.#follow(connection);
    return connection;
  }

  #subscribe(interest: Interest, connection: NatsConnection): void {
    const { subject, queue } = interest;
    interest.live = connection.subscribe(subject, {
      ...(queue && { queue }),
      callback: (error, message) => {
        if (error) this.#logger.error(`NATS refused the subscription to ${subject}: ${error.message}`);
        else this.#deliver(interest, message);
      },
    });
  }

  /** What a receiver throws would end the client's reading of the connection, without a word. */
  #deliver({ subject, receive }: Interest, message: Msg): void {
    try {
      receive(message);
    } catch (error) {
      this.#logger.error(`A message for ${subject} was dropped: ${String(error)}`);
    }
  }

  async #follow(connection: NatsConnection): Promise<void> {
    for await (const event of connection.status()) {
      if (event.type === 'disconnect') this.#fall();
      // The client does not tell that nothing answers.
      if (event.type === 'reconnecting') this.#refusal = undefined;
      if (event.type === 'reconnect') {
        this.#logger.log('Reconnected to NATS.');
        this.#rise();
      }
      if (event.type !== 'error') continue;
      if (isRefusal(event.error)) this.#refuse();
      else this.#logger.warn(`NATS: ${event.error.message}`);
    }
    if (this.#stop.signal.aborted) return;
    this.#fall();
    this.#logger.error('The connection to NATS is closed and will not be reopened');
  }

  /** Each attempt is refused, until this process or NATS is restarted with another password. */
  #refuse(): void {
    const { user, token, authenticator } = this.options.connection ?? {};
    const isOfAddress = !user && !token && !authenticator;
    this.#refusal = `NATS refuses the user or password${isOfAddress ? ' of NATS_URL' : ''}`;
    this.#refusals.log('refused', {
      message: `${this.#refusal}; retrying. Set the same password on both sides, and restart the process that has the old password`,
    });
  }

  #rise(): void {
    this.#up = true;
    this.#refusal = undefined;
    this.#refusals.forget();
    for (const listener of this.#upListeners) listener();
  }

  #fall(): void {
    if (!this.#up) return;
    this.#up = false;
    if (!this.#stop.signal.aborted) this.#logger.warn('Lost the connection to NATS; reconnecting');
    for (const listener of this.#downListeners) listener();
  }
}

/** A server that is too busy to read the log-in in time also ends it by an error of this class. */
function isRefusal(error: unknown): boolean {
  return error instanceof AuthorizationError && /^authorization violation/i.test(error.message);
}
