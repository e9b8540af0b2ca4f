import {
  AckPolicy,
  DeliverPolicy,
  DiscardPolicy,
  jetstreamManager,
  JetStreamApiCodes,
  JetStreamApiError,
  RetentionPolicy,
  StorageType,
  type ConsumerConfig,
  type JetStreamManager,
  type StreamConfig,
} from '@nats-io/jetstream';
import { nanos, type NatsConnection } from '@nats-io/transport-node';
import type { EventConsumer } from './courier.js';
import { allSubjects, filterOf } from './event-message.js';

export interface JetStreamSettings {
  readonly stream: string;
  /** For how long the stream knows an id again. Beyond it the inbox does. */
  readonly duplicateWindowMs: number;
  /** What no consumer has taken by then is lost to it. */
  readonly maxAgeMs: number;
  /** Copies of the stream in a cluster; used when the stream is made. */
  readonly replicas: number;
  /** Silence after which a delivery goes to another process. */
  readonly ackWaitMs: number;
}

/** Deliveries of one consumer that may wait for an acknowledgement, back-off included. */
const maxAckPending = 256;
const apiTimeoutMs = 2_000;

/**
 * Makes the stream, and the durable consumers of one service, or brings them up to date. What an operator set beside (copies, the
 * greatest size) is left alone. Throws what the server refuses.
 */
export async function setUp(
  connection: NatsConnection,
  service: string,
  consumers: readonly EventConsumer[],
  settings: JetStreamSettings,
): Promise<void> {
  const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
  await ensureStream(manager, settings);
  for (const consumer of consumers) await ensureConsumer(manager, durableName(service, consumer), consumer, settings);
}

export function durableName(service: string, consumer: EventConsumer): string {
  return `${service}_${consumer.name}`;
}

async function ensureStream(manager: JetStreamManager, settings: JetStreamSettings): Promise<void> {
  const { stream, duplicateWindowMs, maxAgeMs, replicas } = settings;
  const wanted = {
    subjects: [allSubjects],
    duplicate_window: nanos(duplicateWindowMs),
    max_age: nanos(maxAgeMs),
  } satisfies Partial<StreamConfig>;
  const found = await unlessMissing(manager.streams.info(stream), JetStreamApiCodes.StreamNotFound);
  if (!found) {
    await manager.streams.add({
      ...wanted,
      name: stream,
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      // A full stream refuses, and the outbox waits: nothing that a consumer still needs is pushed out.
      discard: DiscardPolicy.New,
      num_replicas: replicas,
    });
  } else if (differs(found.config, wanted)) {
    await manager.streams.update(stream, { ...found.config, ...wanted });
  }
}

async function ensureConsumer(
  manager: JetStreamManager,
  name: string,
  consumer: EventConsumer,
  settings: JetStreamSettings,
): Promise<void> {
  const { stream, ackWaitMs } = settings;
  const wanted = {
    filter_subject: filterOf(consumer.eventNames),
    ack_wait: nanos(ackWaitMs),
    max_ack_pending: maxAckPending,
    // The inbox counts the tries that failed; the server would count every restart and outage as well.
    max_deliver: -1,
  } satisfies Partial<ConsumerConfig>;
  const found = await unlessMissing(manager.consumers.info(stream, name), JetStreamApiCodes.ConsumerNotFound);
  if (!found) {
    await manager.consumers.add(stream, {
      ...wanted,
      durable_name: name,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
    });
  } else if (differs(found.config, wanted)) {
    await manager.consumers.update(stream, name, wanted);
  }
}

async function unlessMissing<T>(answer: Promise<T>, missing: number): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === missing) return undefined;
    throw error;
  }
}

function differs(config: object, wanted: object): boolean {
  const current = config as Record<string, unknown>;
  return Object.entries(wanted).some(([key, value]) => JSON.stringify(current[key]) !== JSON.stringify(value));
}
