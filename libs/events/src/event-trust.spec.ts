import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { signatureHeader, Signer } from '@atoll/rpc';
import { expectErrors, startNats, type NatsServer, type TestDatabase } from '@atoll/testing';
import { jetstream } from '@nats-io/jetstream';
import { headers, type MsgHdrs } from '@nats-io/transport-node';
import type { DomainEvent } from './courier.js';
import { encodeEvent, subjectOf } from './event-message.js';
import { openEvent, sealEvent } from './event-seal.js';
import { Events } from './events.js';
import { eventually } from './world/eventually-fixture.js';
import { orderPlaced, shopDatabase } from './world/shop-fixture.js';
import { overJetStream, secret } from './world/topology-fixture.js';
import { World } from './world/world-fixture.js';

let database: TestDatabase;
let nats: NatsServer;
let world: World;
const signer = new Signer(secret);
const unsigned = /is ignored: no ATOLL_BUS_SECRET of this process signed it/;

beforeAll(async () => {
  [database, nats] = await Promise.all([shopDatabase(), startNats()]);
  world = await World.open(overJetStream, { database: database.url, broker: nats.url });
});
beforeEach(async () => {
  await world.start();
  for (const service of ['orders', 'mail'] as const) {
    await eventually(() => expect(world.app(service).get(Events).status()).toEqual({ ready: true }));
  }
});
afterEach(() => world.reset());
afterAll(async () => {
  await world.close();
  await nats.stop();
  await database.drop();
});

function placed(number: number): DomainEvent {
  return { id: randomUUID(), name: orderPlaced.name, payload: { number }, occurredAt: new Date().toISOString() };
}

async function send(subject: string, text: string, messageHeaders?: MsgHdrs): Promise<void> {
  await jetstream(world.observer.nats).publish(subject, text, {
    msgID: randomUUID(),
    ...(messageHeaders && { headers: messageHeaders }),
  });
}

/** What reached the consumers, once an event of the shop itself, which is sent last, has. */
async function taken(): Promise<{ letters: number[]; statistics: number[] }> {
  await world.orders.place([999]);
  await world.settled();
  return { letters: await world.noted('letters'), statistics: await world.noted('statistics') };
}
const onlyTheLast = { letters: [999], statistics: [999] };

describe('an event that somebody else puts into the stream', () => {
  it('has no effect without a signature', async () => {
    expectErrors(unsigned);
    await send(subjectOf(orderPlaced.name), encodeEvent({ ...placed(1), publisher: 'orders' }));
    await send(subjectOf(orderPlaced.name), encodeEvent(placed(2)));
    expect(await taken()).toEqual(onlyTheLast);
  });

  it('has no effect under another secret', async () => {
    expectErrors(unsigned);
    const forged = sealEvent(new Signer('another secret of the bus'), 'orders', placed(1));
    await send(forged.subject, forged.text, forged.headers);
    expect(await taken()).toEqual(onlyTheLast);
  });

  it('has no effect where it was altered, or was signed for another subject or as something else', async () => {
    expectErrors(unsigned);
    const { subject, text, headers: genuine } = sealEvent(signer, 'orders', placed(1));
    await send(subject, text.replace('"number":1', '"number":2'), genuine);
    await send(subject, text.replace('"publisher":"orders"', '"publisher":"mail"'), genuine);
    const cancelled = { ...placed(3), name: 'orders.cancelled' };
    await send(subjectOf('orders.cancelled'), encodeEvent({ ...cancelled, publisher: 'orders' }), genuine);
    const asAnswer = headers();
    const signed = { service: 'orders', kind: 'json', part: '1/1', reply: '', previous: '' } as const;
    asAnswer.set(signatureHeader, signer.signAnswer(signed, new TextEncoder().encode(text)));
    await send(subject, text, asAnswer);
    expect(await taken()).toEqual(onlyTheLast);
  });

  it('has no effect where a service signed it that does not own it', async () => {
    expectErrors(/orders\.placed .* is ignored: mail may not publish such events/);
    const { subject, text, headers: genuine } = sealEvent(signer, 'mail', placed(1));
    await send(subject, text, genuine);
    expect(await taken()).toEqual(onlyTheLast);
  });

  it('has its effect once, however often a copy of a genuine one is sent', async () => {
    const { subject, text, headers: genuine } = sealEvent(signer, 'orders', placed(1));
    for (let copy = 0; copy < 3; copy += 1) await send(subject, text, genuine);
    expect(await taken()).toEqual({ letters: [1, 999], statistics: [1, 999] });
    await world.stop('mail');
    await send(subject, text, genuine);
    await world.start();
    await world.settled();
    expect(await world.noted('letters')).toEqual([1, 999]);
  });
});

describe('an event of a release that did not sign', () => {
  /** As if the services had run that release until now. */
  async function beforeTheUpgrade(work: () => Promise<void>): Promise<void> {
    await world.stop();
    await world.observer.database.query('DELETE FROM mail.unsigned_event_cut');
    await work();
    await world.start();
  }

  it('is taken where it was in the stream at the upgrade, and not after it', async () => {
    expectErrors(unsigned);
    await beforeTheUpgrade(() => send(subjectOf(orderPlaced.name), encodeEvent(placed(1))));
    await world.settled();
    await send(subjectOf(orderPlaced.name), encodeEvent(placed(2)));
    expect(await taken()).toEqual({ letters: [1, 999], statistics: [1, 999] });
    await world.stop('mail');
    await send(subjectOf(orderPlaced.name), encodeEvent(placed(3)));
    await world.start();
    await world.settled();
    expect(await world.noted('letters')).toEqual([1, 999]);
  });

  it('is not taken from a stream that was created after the upgrade', async () => {
    expectErrors(unsigned);
    await beforeTheUpgrade(() => send(subjectOf(orderPlaced.name), encodeEvent(placed(1))));
    await world.settled();
    await overJetStream.reset(world.observer);
    await eventually(async () => {
      await send(subjectOf(orderPlaced.name), encodeEvent(placed(2)));
    });
    expect(await taken()).toEqual({ letters: [1, 999], statistics: [1, 999] });
  });
});

describe('a signature of an event', () => {
  it('verifies under any secret of a rotation', () => {
    const sealed = sealEvent(new Signer('the secret of before'), 'orders', placed(1));
    const message = { ...sealed, string: () => sealed.text };
    expect(openEvent(new Signer([secret, 'the secret of before']), message, false)).toMatchObject({
      publisher: 'orders',
    });
    expect(openEvent(signer, message, false)).toBe('forged');
  });
});
