import { expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import fc from 'fast-check';
import { FairTurns } from './fair-turns.js';
import { PacedSocket, PacedStream } from './paced-streams.js';

/**
 * Pieces that take this long each, in the order in which they were done, with the turn of the event loop in which they
 * were.
 */
async function served(queues: readonly (readonly [who: string, pieces: number])[], pieceMs = 1) {
  let [nowMs, turn] = [0, 0];
  const turns = new FairTurns(2, () => nowMs);
  const done: { who: string; turn: number }[] = [];
  for (const [who, pieces] of queues)
    for (let piece = 0; piece < pieces; piece++)
      turns.queue(who, () => {
        nowMs += pieceMs;
        done.push({ who, turn });
      });
  const all = queues.reduce((sum, [, pieces]) => sum + pieces, 0);
  for (; done.length < all; turn++) await new Promise(setImmediate);
  return done;
}

const queues = fc.uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd'), fc.integer({ min: 1, max: 40 })), {
  selector: ([who]) => who,
  minLength: 1,
});

it('law: no turn of the event loop does more than its time and one piece', async () => {
  await fc.assert(
    fc.asyncProperty(queues, fc.integer({ min: 1, max: 3 }), async (given, pieceMs) => {
      const perTurn = Map.groupBy(await served(given, pieceMs), ({ turn }) => turn);
      for (const pieces of perTurn.values()) expect(pieces.length).toBeLessThanOrEqual(Math.ceil(2 / pieceMs));
    }),
  );
});

it('law: nobody who waits is served later for what another has queued', async () => {
  await fc.assert(
    fc.asyncProperty(queues, async (given) => {
      const order = (await served(given)).map(({ who }) => who);
      for (const [who, pieces] of given) {
        const others = order.slice(0, order.lastIndexOf(who)).filter((other) => other !== who);
        for (const [other] of given) expect(others.filter((one) => one === other).length).toBeLessThanOrEqual(pieces);
      }
    }),
  );
});

it('law: bytes pass unchanged through sockets and streams that take turns', async () => {
  const turns = new FairTurns();
  const { port, close } = await listening((socket) => {
    const paced = new PacedSocket(socket, turns, () => 'one');
    paced.pipe(new PacedStream(turns, 'one')).pipe(paced);
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
    { numRuns: 20 },
  );
  await close();
});

it('law: what passes comes in pieces of at most a packet, with what others wait for between them', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 300_000 }), async (length) => {
      const turns = new FairTurns(0);
      const paced = new PacedStream(turns, 'bulk');
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
    { numRuns: 30 },
  );
});

it('reads on from a socket only when what it read has been taken', async () => {
  const taken = Promise.withResolvers<{ socket: Socket; paced: PacedSocket }>();
  const { port, close } = await listening((socket) => {
    const paced = new PacedSocket(socket, new FairTurns(), () => 'one');
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
