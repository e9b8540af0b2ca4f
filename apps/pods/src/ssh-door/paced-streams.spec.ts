import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { FairTurns } from './fair-turns.js';
import { PacedSocket } from './paced-streams.js';

const mib = 1024 * 1024;

it('a client that does not read what it is answered is not read either, and both go on when it does', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  const [socket] = (await once(server, 'connection')) as [Socket];
  const paced = new PacedSocket(socket, new FairTurns(), () => 'one');
  // As SSH answers requests, without a look at whether there is room.
  paced.on('data', (chunk: Buffer) => paced.write(Buffer.alloc(chunk.length * 64)));
  client.write(Buffer.alloc(mib));
  while (paced.writableLength < 8 * mib) await nextTurn();
  for (let turns = 0; turns < 2_000; turns += 1) await nextTurn();
  expect(paced.writableLength).toBeLessThan(12 * mib);
  let bytes = 0;
  for await (const chunk of client as AsyncIterable<Buffer>) if ((bytes += chunk.length) === 64 * mib) break;
  expect(bytes).toBe(64 * mib);
  client.destroy();
  server.close();
});
