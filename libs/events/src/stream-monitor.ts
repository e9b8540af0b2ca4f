import { jetstreamManager, type ConsumerInfo, type JetStreamManager, type StreamInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { Logger } from '@nestjs/common';
import type { StreamUsage } from './courier.js';

/** Beyond this share of its limit the stream is relieved of what all consumers have acknowledged. */
const purgeAt = 0.5;
/** Share of the limit at which the alarm is raised. It ends below `purgeAt`. */
const alarmAt = 0.75;
const apiTimeoutMs = 2_000;

/**
 * Watches how full the event stream is: deletes what all consumers have acknowledged, and raises an alarm when what is
 * left comes near the limit. Nothing undelivered is ever deleted; a full stream refuses, and events wait in the
 * outboxes.
 */
export class StreamMonitor {
  readonly #logger = new Logger('Events');
  #usage: StreamUsage | undefined;
  #before: { created: string; lastSequence: number } | undefined;
  #alarm = false;

  constructor(private readonly stream: string) {}

  /** As of the last check; undefined before the first. */
  get usage(): StreamUsage | undefined {
    return this.#usage;
  }

  /** Throws what the server or the connection throws. */
  async check(connection: NatsConnection): Promise<void> {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
    let info = await manager.streams.info(this.stream);
    const consumers = fullness(info) > purgeAt ? await allConsumers(manager, this.stream) : [];
    if (await this.purge(manager, info, consumers)) info = await manager.streams.info(this.stream);
    this.#before = { created: info.created, lastSequence: info.state.last_seq };
    this.#usage = { bytes: info.state.bytes, maxBytes: info.config.max_bytes };
    this.updateAlarm(fullness(info), consumers);
  }

  /** Deletes what all consumers have acknowledged. Returns whether there was anything. */
  private async purge(
    manager: JetStreamManager,
    { created, state }: StreamInfo,
    consumers: readonly ConsumerInfo[],
  ): Promise<boolean> {
    // A consumer without work is done with all messages that it knows of. In a cluster its replica may lag behind, so
    // only messages of the check before count.
    const known = this.#before?.created === created ? this.#before.lastSequence : 0;
    const acknowledged = consumers.map((consumer) => (isIdle(consumer) ? known : consumer.ack_floor.stream_seq));
    const upTo = Math.min(known, ...acknowledged);
    if (consumers.length === 0 || upTo < state.first_seq) return false;
    await manager.streams.purge(this.stream, { seq: upTo + 1 });
    return true;
  }

  private updateAlarm(share: number, consumers: readonly ConsumerInfo[]): void {
    if (!this.#alarm && share >= alarmAt) {
      this.#alarm = true;
      const [last] = consumers.toSorted((one, other) => undelivered(other) - undelivered(one));
      const furthestBehind = last ? ` Furthest behind: ${last.name}, with ${undelivered(last)} events.` : '';
      this.#logger.warn(
        `The event stream ${this.stream} is ${Math.round(share * 100)} % full of undelivered events; ` +
          `when it is full, events of all services wait in the outboxes until consumers catch up.${furthestBehind}`,
      );
    } else if (this.#alarm && share < purgeAt) {
      this.#alarm = false;
      this.#logger.log(`The event stream ${this.stream} is no longer near its limit.`);
    }
  }
}

async function allConsumers(manager: JetStreamManager, stream: string): Promise<ConsumerInfo[]> {
  const consumers: ConsumerInfo[] = [];
  for await (const consumer of manager.consumers.list(stream)) consumers.push(consumer);
  return consumers;
}

function fullness({ state, config }: StreamInfo): number {
  return config.max_bytes > 0 ? state.bytes / config.max_bytes : 0;
}

function isIdle({ num_pending, num_ack_pending }: ConsumerInfo): boolean {
  return num_pending === 0 && num_ack_pending === 0;
}

function undelivered({ num_pending, num_ack_pending }: ConsumerInfo): number {
  return num_pending + num_ack_pending;
}
