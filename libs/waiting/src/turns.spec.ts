import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Turns } from './turns.js';

/**
 * Pieces that take this long each, in the order in which they were done, with the turn of the event loop in which they
 * were.
 */
async function served(queues: readonly (readonly [who: string, pieces: number])[], pieceMs = 1) {
  let [nowMs, turn] = [0, 0];
  const turns = new Turns(2, () => nowMs);
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

it('law: what a piece goes on to do in promises counts as its time', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 0, max: 5 }), async (pieces, awaits) => {
      let [nowMs, turn] = [0, 0];
      const turns = new Turns(2, () => nowMs);
      const doneIn: number[] = [];
      const piece = async (): Promise<void> => {
        for (let each = 0; each < awaits; each++) await Promise.resolve();
        nowMs += 1;
        doneIn.push(turn);
      };
      for (let each = 0; each < pieces; each++) turns.queue('a', () => void piece());
      for (; doneIn.length < pieces; turn++) await new Promise(setImmediate);
      for (const done of Map.groupBy(doneIn, (each) => each).values()) expect(done.length).toBeLessThanOrEqual(2);
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

it('a turn that is passed serves nobody, and no more than 8 are passed in a row', async () => {
  const turns = new Turns();
  const servedIn: number[] = [];
  let turn = 0;
  for (let piece = 0; piece < 3; piece++) turns.queue('a', () => servedIn.push(turn));
  for (turn = 1; servedIn.length < 3; turn++) {
    if (turn !== 1 && turn < 15) turns.pass();
    await new Promise(setImmediate);
  }
  expect(servedIn).toEqual([1, 10, 15]);
});

it('a piece that is withdrawn does not run, and takes no turn', async () => {
  const turns = new Turns();
  const servedIn: string[] = [];
  let turn = 0;
  const queue = (key: string, piece: string) => turns.queue(key, () => servedIn.push(`${piece} in ${turn}`));
  const withdrawals = [queue('a', 'a1'), queue('a', 'a2'), queue('b', 'b1')];
  queue('b', 'b2');
  queue('c', 'c1');
  withdrawals.forEach((withdraw) => withdraw());
  queue('a', 'a3');
  withdrawals.forEach((withdraw) => withdraw());
  for (; servedIn.length < 3; turn++) await new Promise(setImmediate);
  expect(servedIn).toEqual(['b2 in 0', 'c1 in 1', 'a3 in 2']);
});

it('once all are served it takes no further turns of the event loop', async () => {
  let looks = 0;
  const turns = new Turns(2, () => (looks += 1));
  await new Promise<void>((resolve) => turns.queue('a', resolve));
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  const before = looks;
  for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
  expect(looks).toBe(before);
});
