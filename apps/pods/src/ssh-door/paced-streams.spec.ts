import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { runs } from '@atoll/testing';
import { Turns } from '@atoll/waiting';
import fc from 'fast-check';
import { PacedSocket, PacedStream } from './paced-streams.js';

const mib = 1024 * 1024;

it('a client that does not read what it is answered is not read either, and both go on when it does', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  const [socket] = (await once(server, 'connection')) as [Socket];
  const paced = new PacedSocket(socket, new Turns(), () => 'one');
  // As SSH answers requests, without a look at whether there is room.
  paced.on('data', (chunk: Buffer) => paced.write(Buffer.alloc(chunk.length * 64)));
  client.write(Buffer.alloc(mib));
  while (paced.writableLength < mib) await nextTurn();
  for (let turns = 0; turns < 2_000; turns += 1) await nextTurn();
  expect(paced.writableLength).toBeLessThan(6 * mib);
  let bytes = 0;
  for await (const chunk of client as AsyncIterable<Buffer>) if ((bytes += chunk.length) === 64 * mib) break;
  expect(bytes).toBe(64 * mib);
  client.destroy();
  server.close();
});

it('law: bytes pass unchanged through sockets and streams that take turns', async () => {
  const turns = new Turns();
  const { port, close } = await listening((socket) => {
    const paced = new PacedSocket(socket, turns, () => 'one');
    paced.pipe(new PacedStream((piece) => turns.queue('one', piece))).pipe(paced);
  });
  const chunks = fc.array(fc.uint8Array({ maxLength: 30_000 }), { maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(chunks, async (given) => {
      const [sent, back] = [Buffer.concat(given), [] as Buffer[]];
      const client = connect({ host: '127.0.0.1', port });
      for (const chunk of given) client.write(chunk);
      for (let length = 0; length < sent.length; length += back.at(-1)?.length ?? 0)
        back.push((await once(client, 'data'))[0] as Buffer);
      client.destroy();
      expect(Buffer.concat(back).equals(sent)).toBe(true);
    }),
    runs(20),
  );
  await close();
});

it('law: what passes comes in pieces of at most a packet, with what others wait for between them', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 300_000 }), async (length) => {
      const turns = new Turns(0);
      const paced = new PacedStream((piece) => turns.queue('bulk', piece));
      const seen: string[] = [];
      paced.on('data', (piece: Buffer) => seen.push(piece.length <= 32_768 ? 'piece' : 'block'));
      paced.end(Buffer.alloc(length));
      // Queues again each time that it was served.
      const other = (): void => {
        seen.push('other');
        if (!paced.readableEnded) turns.queue('other', other);
      };
      turns.queue('other', other);
      await once(paced, 'end');
      expect(seen).not.toContain('block');
      expect(seen.filter((one, at) => one === 'piece' && seen[at - 1] === 'piece')).toEqual([]);
    }),
    runs(30),
  );
});

it('counts as unsent all that its socket has not sent', async () => {
  const sent: (() => void)[] = [];
  // Sends nothing until the spec says so.
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => void sent.push(done) });
  const paced = new PacedSocket(socket as Socket, new Turns(), () => 'one');
  paced.write(Buffer.alloc(10));
  paced.write(Buffer.alloc(20));
  expect(paced.writableLength).toBe(30);
  sent[0]?.();
  await nextTurn();
  expect(paced.writableLength).toBe(20);
  paced.destroy();
});

it('a pending write completes when the socket closes', async () => {
  const written = Promise.withResolvers<void>();
  const { port, close } = await listening((socket) => {
    const paced = new PacedSocket(socket, new Turns(), () => 'one');
    // More than the kernel takes.
    paced.write(Buffer.alloc(64 * mib), () => written.resolve());
    setImmediate(() => socket.destroy());
  });
  const client = connect({ host: '127.0.0.1', port })
    .pause()
    .on('error', () => undefined);
  await written.promise;
  client.destroy();
  await close();
});

it('reads on from a socket only when what it read has been taken', async () => {
  const taken = Promise.withResolvers<{ socket: Socket; paced: PacedSocket }>();
  const { port, close } = await listening((socket) => {
    const paced = new PacedSocket(socket, new Turns(), () => 'one');
    paced.once('data', () => paced.pause());
    taken.resolve({ socket, paced });
  });
  const client = connect({ host: '127.0.0.1', port });
  client.write(Buffer.alloc(100_000_000));
  const { socket, paced } = await taken.promise;
  while (paced.readableLength < paced.readableHighWaterMark) await new Promise(setImmediate);
  const read = socket.bytesRead;
  for (let turn = 0; turn < 500; turn++) await new Promise(setImmediate);
  expect(socket.bytesRead).toBe(read);
  expect(client.writableLength).toBeGreaterThan(0);
  client.destroy();
  await close();
});

async function listening(serve: (socket: Socket) => void): Promise<{ port: number; close: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    serve(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const close = async (): Promise<void> => {
    const closed = once(server.close(), 'close');
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  return { port: (server.address() as AddressInfo).port, close };
}
