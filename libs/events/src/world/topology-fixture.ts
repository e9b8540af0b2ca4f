import { randomUUID } from 'node:crypto';
import { NatsLink, Signer } from '@atoll/rpc';
import { jetstream, jetstreamManager, type JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { DataSource } from 'typeorm';
import type { Courier, DomainEvent } from '../courier.js';
import { allSubjects } from '../event-message.js';
import { sealEvent } from '../event-seal.js';
import { InProcessCourier } from '../in-process-courier.js';
import { JetStreamCourier } from '../jetstream-courier.js';
import type { JetStreamSettings } from '../jetstream-setup.js';
import { shopServices, type ShopService } from './shop-fixture.js';
import { eventually } from './eventually-fixture.js';

export const stream = 'ATOLL_EVENTS';
export const secret = 'the secret of the shop';
/** Short, so that specs can outwait them. */
export const duplicateWindowMs = 300;
export const ackWaitMs = 600;

/** One way to run the shop: the same examples hold for each. */
export interface Topology {
  readonly name: string;
  /** Which services share a process. */
  readonly processes: readonly (readonly ShopService[])[];
  openCourier(natsUrl: string): { courier: Courier; close(): Promise<void> };
  /** Delivers an event once more, as after an acknowledgement that was lost. */
  deliverAgain(event: DomainEvent, observer: Observer): Promise<void>;
  /** Whether the courier has nothing left to deliver. */
  isIdle(observer: Observer): Promise<boolean>;
  /** Forgets all that was ever delivered. */
  reset(observer: Observer): Promise<void>;
}

/** Connections of the spec itself, by no proxy. */
export interface Observer {
  readonly database: DataSource;
  readonly nats: NatsConnection;
}

export const inProcess: Topology = {
  name: 'in one process',
  processes: [shopServices],
  openCourier: () => ({ courier: new InProcessCourier({ services: shopServices }), close: () => Promise.resolve() }),
  async deliverAgain({ id, name, payload, occurredAt, position, previous }, { database }) {
    await database.query(
      `INSERT INTO orders.outbox (id, event_name, payload, occurred_at, position, previous) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
      [id, name, JSON.stringify(payload), occurredAt, position, previous],
    );
    await database.query(`NOTIFY "outbox.orders"`);
  },
  isIdle: () => Promise.resolve(true),
  reset: () => Promise.resolve(),
};

/** As the product runs it, but for the times, which specs can outwait, and the given settings. */
export const overJetStreamWith = (settings: Partial<JetStreamSettings>): Topology => ({
  name: 'over JetStream',
  processes: shopServices.map((service) => [service]),
  openCourier(natsUrl) {
    const link = NatsLink.open({ servers: natsUrl, reconnectWaitMs: 50 });
    const courier = new JetStreamCourier({
      link,
      secret,
      duplicateWindowMs,
      ackWaitMs,
      checkEveryMs: 100,
      ...settings,
    });
    return { courier, close: () => link.close() };
  },
  async deliverAgain(event, { nats }) {
    const { subject, text, headers } = sealEvent(new Signer(secret), 'orders', event);
    await jetstream(nats).publish(subject, text, { msgID: randomUUID(), headers });
  },
  async isIdle({ nats }) {
    const manager = await managerOf(nats);
    for await (const { num_pending, num_ack_pending } of manager.consumers.list(stream)) {
      if (num_pending > 0 || num_ack_pending > 0) return false;
    }
    return true;
  },
  async reset({ nats }) {
    const manager = await managerOf(nats);
    // A busy disk makes it take longer than a question is waited for; what was deleted meanwhile is not listed again.
    await eventually(async () => {
      for await (const name of manager.streams.names(allSubjects)) await manager.streams.delete(name);
    });
  },
});

export const overJetStream = overJetStreamWith({});

/** Impatient: now and then a server that has just come back loses a question, and `eventually` asks again. */
export function managerOf(nats: NatsConnection): Promise<JetStreamManager> {
  return jetstreamManager(nats, { checkAPI: false, timeout: 10_000 });
}
