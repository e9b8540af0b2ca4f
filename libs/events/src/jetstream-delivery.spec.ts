import { expect, it } from '@jest/globals';
import { Signer } from '@atoll/rpc';
import type { ConsumerMessages, JsMsg } from '@nats-io/jetstream';
import { JetStreamDelivery } from './jetstream-delivery.js';
import { secret } from './world/topology-fixture.js';

it('a delivery stops also where the client does not show the subscription of its messages', async () => {
  const stopped = Promise.withResolvers<IteratorResult<JsMsg>>();
  const messages: Partial<ConsumerMessages> = {
    stop: () => stopped.resolve({ done: true, value: undefined }),
    [Symbol.asyncIterator]: () => ({ next: () => stopped.promise }),
  };
  const consumer = { name: 'guests', eventNames: [], take: () => Promise.resolve('done' as const) };
  const delivery = new JetStreamDelivery(consumer, new Signer(secret), 1_000);
  delivery.start(messages as ConsumerMessages, 0, () => undefined);
  await expect(delivery.stop()).resolves.toBeUndefined();
});
