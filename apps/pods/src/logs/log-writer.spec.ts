import { setImmediate as turn } from 'node:timers/promises';
import { AppError } from '@atoll/errors';
import { beforeEach, describe, expect, it } from '@jest/globals';
import type { EntityManager } from 'typeorm';
import type { LogClaims } from './log-claims.js';
import type { ReadLines } from './log-progress.js';
import type { SourceLines } from './log-line.js';
import { noneFailed, type LogStore, type SaveRead } from './log-store.js';
import { LogWriter } from './log-writer.js';

/** A store that ends what it is asked when the spec says so. */
class HeldStore {
  /** A team with lines that it cannot take at all. */
  poison: string | undefined;
  readonly asked: { teams: string[]; end: (refusing?: string) => Promise<void>; fail: () => void }[] = [];

  append<Group extends SourceLines>(
    groups: readonly Group[],
    save: SaveRead<Group>,
  ): Promise<ReadonlyMap<number, unknown>> {
    return new Promise((resolve, reject) => {
      const end = async (refusing?: string): Promise<void> => {
        if (groups.some(({ source }) => source.teamId === this.poison)) {
          reject(new Error(`${this.poison} is no text`));
          return turn();
        }
        const failed = groups.filter(({ source }) => source.teamId === refusing);
        await save(
          {} as EntityManager,
          groups.filter((group) => !failed.includes(group)),
        );
        resolve(
          failed.length > 0
            ? new Map(failed.map(({ source }) => [source.no, new Error(`${refusing} is over its limit`)]))
            : noneFailed,
        );
        await turn();
      };
      this.asked.push({
        teams: groups.map(({ source }) => source.teamId),
        end,
        fail: () => reject(new AppError('unavailable', 'it is away')),
      });
    });
  }
}

const saved: number[] = [];
const claims = {
  save: (_: EntityManager, reads: readonly ReadLines[]) => {
    saved.push(...reads.map(({ source }) => source.no));
    return Promise.resolve(new Set(reads.map(({ source }) => source.no)));
  },
} as unknown as LogClaims;

let store: HeldStore;
let writer: LogWriter;
let nextNo: number;
beforeEach(() => {
  store = new HeldStore();
  writer = new LogWriter(store as unknown as LogStore, claims);
  nextNo = 1;
  saved.length = 0;
});

/** A source of the team writes so many lines. Says what came of it. */
function write(teamId: string, lines = 1): Promise<boolean | string> {
  const no = nextNo++;
  const source = { no, teamId } as ReadLines['source'];
  const messages = Array.from({ length: lines }, () => ({ atNs: 1n, sourceNo: no, stream: null, message: 'x' }));
  return writer.write({ source, lines: messages } as unknown as ReadLines).catch((error: Error) => error.message);
}

describe('the writer of logs', () => {
  it('tells whose lines were not stored, and saves those of all others', async () => {
    const written = [write('one'), write('over'), write('other')];
    await turn();
    await store.asked[0]?.end('over');
    expect(await Promise.all(written)).toEqual([true, 'over is over its limit', true]);
    expect(saved).toEqual([1, 3]);
  });

  it('has nobody wait for a team that the store refused, until it takes its lines again', async () => {
    const first = [write('one'), write('over')];
    await turn();
    // It waits beside the first, and goes along with no other team any more.
    const waiting = write('over');
    await store.asked[0]?.end('over');
    await Promise.all(first);
    const hanging = store.asked[1];
    expect(hanging?.teams).toEqual(['over']);
    const beside = write('one');
    await turn();
    await store.asked[2]?.end();
    expect(await beside).toBe(true);
    await hanging?.end();
    expect(await waiting).toBe(true);
    const together = [write('one'), write('over')];
    await turn();
    expect(store.asked[3]?.teams).toEqual(['one', 'over']);
    await store.asked[3]?.end();
    expect(await Promise.all(together)).toEqual([true, true]);
  });

  it('writes for a team that the store refused one after the other, however many of its sources were refused at once', async () => {
    const first = [write('over'), write('one'), write('over')];
    await turn();
    const waiting = write('over');
    await store.asked[0]?.end('over');
    await Promise.all(first);
    const more = [write('over'), write('over')];
    await turn();
    expect(store.asked.map(({ teams }) => teams)).toEqual([['over', 'one', 'over'], ['over']]);
    await store.asked[1]?.end();
    expect(await waiting).toBe(true);
    await store.asked[2]?.end();
    expect(await Promise.all(more)).toEqual([true, true]);
  });

  it('tells everybody where the store is away, and sets nobody apart', async () => {
    const first = [write('one'), write('other')];
    await turn();
    store.asked[0]?.fail();
    expect(await Promise.all(first)).toEqual(['it is away', 'it is away']);
    void write('one');
    void write('other');
    await turn();
    expect(store.asked[1]?.teams).toEqual(['one', 'other']);
  });

  it('sets nobody apart where it is only told that a source has nothing to store', async () => {
    const first = [write('over'), write('one', 0)];
    await turn();
    await store.asked[0]?.end('over');
    expect(await Promise.all(first)).toEqual(['over is over its limit', true]);
    void write('over');
    void write('one');
    await turn();
    expect(store.asked[1]?.teams).toEqual(['over', 'one']);
  });

  it('finds lines that the store cannot take, and stores all others', async () => {
    store.poison = 'bad';
    const written = ['one', 'two', 'bad', 'three', 'four', 'five'].map((team) => write(team));
    for (let at = 0; at < 20; at += 1) {
      await turn();
      await store.asked[at]?.end();
    }
    expect(await Promise.all(written)).toEqual([true, true, 'bad is no text', true, true, true]);
    expect(saved.toSorted()).toEqual([1, 2, 4, 5, 6]);
  });

  it('gives each team its turn: a team with 1,000 pods that log delays the lines of one with a pod by one transaction', async () => {
    void write('running');
    await turn();
    const crowd = Array.from({ length: 1_000 }, () => write('crowd', 500));
    const single = write('single');
    await store.asked[0]?.end();
    expect(store.asked[1]?.teams.toSorted()).toEqual([...Array.from({ length: 19 }, () => 'crowd'), 'single']);
    await store.asked[1]?.end();
    expect(await single).toBe(true);
    for (let at = 2; at < store.asked.length; at += 1) await store.asked[at]?.end();
    expect(new Set(await Promise.all(crowd))).toEqual(new Set([true]));
  });

  it('serves more teams than fit into a transaction one after the other', async () => {
    const teams = Array.from({ length: 250 }, (_, at) => `team ${at}`);
    const all = teams.flatMap((team) => [write(team), write(team)]);
    await turn();
    for (let at = 0; at < store.asked.length; at += 1) await store.asked[at]?.end();
    await Promise.all(all);
    expect(store.asked.map(({ teams: these }) => new Set(these).size)).toEqual([100, 100, 50]);
  });
});
