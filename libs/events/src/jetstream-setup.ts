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
  type StreamInfo,
} from '@nats-io/jetstream';
import { nanos, type NatsConnection } from '@nats-io/transport-node';
import type { EventConsumer, StreamState } from './courier.js';
import { allSubjects, filterOf } from './event-message.js';

export interface JetStreamSettings {
  readonly stream: string;
  /** How long the stream recognises the id of an event. Beyond it the inbox does. */
  readonly duplicateWindowMs: number;
  /** Size at which the stream rejects further events. Default: the operator's setting of the stream, else 1 GiB. */
  readonly maxBytes?: number;
  /** Copies of the stream in a cluster, 1 to 5. Default: the operator's setting of the stream, else 1. */
  readonly replicas?: number;
  /** A delivery that shows no sign of life for so long is made again, to any process. */
  readonly ackWaitMs: number;
  /** Between two looks at how full the stream is. */
  readonly checkEveryMs: number;
}

const defaultMaxBytes = 1024 ** 3;
/** Deliveries of one consumer that may wait for an acknowledgement, back-off included. */
const maxAckPending = 256;
const apiTimeoutMs = 2_000;

/**
 * Creates the stream, and the durable consumers of one service, or brings them up to date. Number of copies and size
 * that an operator has set on the stream stay, unless the settings name them. Resolves with what the stream was before.
 * Throws what the server refuses.
 */
export async function setUp(
  connection: NatsConnection,
  service: string,
  consumers: readonly EventConsumer[],
  settings: JetStreamSettings,
): Promise<StreamState> {
  const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
  const { created, state } = await ensureStream(manager, settings);
  for (const consumer of consumers) await ensureConsumer(manager, durableName(service, consumer), consumer, settings);
  return { created, lastSequence: state.last_seq };
}

export function durableName(service: string, consumer: EventConsumer): string {
  return `${service}_${consumer.name}`;
}

async function ensureStream(manager: JetStreamManager, settings: JetStreamSettings): Promise<StreamInfo> {
  const { stream, duplicateWindowMs, maxBytes, replicas } = settings;
  const found = await unlessMissing(manager.streams.info(stream), JetStreamApiCodes.StreamNotFound);
  const limit = maxBytes ?? (found && found.config.max_bytes > 0 ? found.config.max_bytes : defaultMaxBytes);
  const wanted = {
    subjects: [allSubjects],
    duplicate_window: nanos(duplicateWindowMs),
    // Undelivered events do not expire: the limit is bytes, and `StreamMonitor` deletes what has been delivered.
    max_age: 0,
    // A limit below what the stream holds would make the server delete the oldest.
    max_bytes: Math.max(limit, found?.state.bytes ?? 0),
    ...(replicas !== undefined && { num_replicas: replicas }),
  } satisfies Partial<StreamConfig>;
  if (!found) {
    return manager.streams.add({
      num_replicas: 1,
      ...wanted,
      name: stream,
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      // A full stream refuses, and events wait in the outboxes: nothing that a consumer still needs is deleted.
      discard: DiscardPolicy.New,
    });
  }
  return differs(found.config, wanted) ? manager.streams.update(stream, { ...found.config, ...wanted }) : found;
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
