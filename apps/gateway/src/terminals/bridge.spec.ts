import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { Bridge } from './bridge.js';

let server: Server;
beforeAll(async () => {
  server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => void server.close());

/** Both ends of a connection. */
async function connection(): Promise<[here: Socket, there: Socket]> {
  const there = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const [here] = (await once(server, 'connection')) as [Socket];
  return [here.on('error', () => undefined), there.on('error', () => undefined)];
}

it('closes where its browser is gone, and the end cannot be written to it', async () => {
  const [browser, page] = await connection();
  const [replica, pod] = await connection();
  const ended = Promise.withResolvers<void>();
  const bridge = new Bridge(browser, replica, ended.resolve);
  const closed = bridge.close();
  browser.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
  await closed;
  await ended.promise;
  expect([browser.destroyed, replica.destroyed]).toEqual([true, true]);
  await bridge.close();
  for (const end of [page, pod]) end.destroy();
});
