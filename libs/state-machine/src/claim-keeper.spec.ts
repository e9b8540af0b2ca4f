import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { timeoutFactor } from '@atoll/testing';
import { setTimeout as delay } from 'node:timers/promises';
import type { DataSource } from 'typeorm';
import { eventually, Harbour, type BerthEntity } from './berth-fixture.js';
import { ClaimKeeper, type KeptClaim } from './claim-keeper.js';
import { Claims, type Claim } from './claims.js';
import { Lanes } from './lanes.js';

/** A third of it is longer than a busy machine keeps a process waiting. */
const claimMs = 1_000 * timeoutFactor;
let harbour: Harbour;
let keeper: ClaimKeeper;
let kept: KeptClaim[];
beforeAll(async () => {
  harbour = await Harbour.open();
});
beforeEach(async () => {
  await harbour.dataSource.query('TRUNCATE berth');
  keeper = new ClaimKeeper(harbour.dataSource, claimMs);
  kept = [];
});
afterEach(() => {
  for (const claim of kept) keeper.drop(claim);
  jest.restoreAllMocks();
});
afterAll(() => harbour.close());

async function claim(count = 1): Promise<Claim<BerthEntity>[]> {
  for (let at = 0; at < count; at += 1) await harbour.ask(`${at}`, `pier-${at}`);
  const lanes = new Lanes({ concurrency: 100, laneConcurrency: 1 });
  return new Claims(harbour.machine, harbour.dataSource, claimMs).make(count, lanes);
}

function keep(claims: readonly Claim<BerthEntity>[]): KeptClaim[] {
  kept.push(...claims.map((each) => keeper.keep(harbour.machine, each)));
  return kept;
}

const untilOf = async ({ row }: Claim<BerthEntity>) => (await harbour.read(row.berthId)).claimedUntil?.getTime() ?? NaN;

describe('claims in hand', () => {
  it('are extended again and again, until they are dropped', async () => {
    const [made] = await claim();
    const [held] = keep([made!]);
    for (let beats = 0; beats < 3; beats += 1) {
      const before = await untilOf(made!);
      await eventually(async () => (await untilOf(made!)) > before);
    }
    await eventually(async () => held?.until?.getTime() === (await untilOf(made!)));
    keeper.drop(held!);
    // A beat that is under way may extend it once more.
    const runOut = 'SELECT FROM berth WHERE claimed_until < clock_timestamp()';
    await eventually(async () => (await harbour.dataSource.query<object[]>(runOut)).length === 1);
  });

  it('are extended by one statement a beat, of however many rows of however many machines', async () => {
    const made = await claim(5);
    keep(made.slice(0, 3));
    // Another machine, as far as the keeper knows.
    const other = {
      table: 'berth',
      key: 'berth_id',
      keyType: 'bigint',
      keyOf: (row: object) => (row as BerthEntity).berthId,
    };
    kept.push(...made.slice(3).map((each) => keeper.keep(other, each)));
    const query = jest.spyOn(harbour.dataSource, 'query');
    const before = kept.map(({ until }) => until?.getTime() ?? 0);
    await eventually(() => kept.every(({ until }, at) => (until?.getTime() ?? 0) > (before[at] ?? 0)));
    expect(query.mock.calls.length).toBe(1);
  });

  it('are lost when the row is moved, or claimed by another worker: the step is told', async () => {
    // By its own clock, which stands still, the process loses none.
    jest.spyOn(performance, 'now').mockReturnValue(performance.now());
    const [moved, taken, mine] = await claim(3);
    const held = keep([moved!, taken!, mine!]);
    await harbour.send(moved!.row.berthId, 'CANCEL');
    await harbour.dataSource.query('UPDATE berth SET claim_token = gen_random_uuid() WHERE berth_id = $1', [
      taken!.row.berthId,
    ]);
    await eventually(() => held.slice(0, 2).every(({ lost }) => lost.aborted));
    expect(held[2]?.lost.aborted).toBe(false);
  });

  it('are extended although another transaction holds the row of one of them; that one is not lost by it', async () => {
    const [locked, free] = await claim(2);
    const held = keep([locked!, free!]);
    await harbour.transactions.run(async (manager) => {
      await manager.query('SELECT FROM berth WHERE berth_id = $1 FOR UPDATE', [locked!.row.berthId]);
      const before = held[1]?.until?.getTime() ?? 0;
      await eventually(() => (held[1]?.until?.getTime() ?? 0) > before);
    });
    const before = held[0]?.until?.getTime() ?? 0;
    await eventually(() => (held[0]?.until?.getTime() ?? 0) > before);
  });

  it('go on to be extended after a beat that failed', async () => {
    const [made] = await claim();
    const [held] = keep([made!]);
    const query = jest.spyOn(harbour.dataSource, 'query').mockRejectedValueOnce(new Error('The database is away.'));
    await eventually(() => query.mock.calls.length > 0);
    const before = held?.until?.getTime() ?? 0;
    await eventually(() => (held?.until?.getTime() ?? 0) > before);
  });

  it('count as lost once they may have run out by the clock of the process, whatever it has not heard', async () => {
    const nowMs = performance.now();
    const clock = jest.spyOn(performance, 'now').mockReturnValue(nowMs);
    const [made] = await claim();
    jest.spyOn(harbour.dataSource, 'query').mockImplementation(() => new Promise(() => undefined));
    const [held] = keep([made!]);
    expect(held?.lost.aborted).toBe(false);
    clock.mockReturnValue(nowMs + claimMs);
    expect(held?.lost.aborted).toBe(true);
  });
});

it('a step that takes much longer than a claim keeps its row from other workers', async () => {
  let answer: (outcome: { event: 'DREDGED' }) => void = () => undefined;
  harbour.machine.does.dredging = () => new Promise((resolve) => (answer = resolve));
  const [id] = [await harbour.ask()];
  // One that no freeze of the machine outlasts.
  const patient = new ClaimKeeper(harbour.dataSource, 4 * claimMs);
  const settled = harbour.worker({ stepMs: 3_600_000 }, harbour.machine, patient).settle();
  await harbour.eventuallyBegun(1);
  const first = (await harbour.read(id)).claimedUntil;
  await eventually(
    async () => ((await harbour.read(id)).claimedUntil?.getTime() ?? 0) > (first?.getTime() ?? 0) + patient.claimMs,
  );
  expect(await harbour.worker().doNext()).toBe(false);
  answer({ event: 'DREDGED' });
  await settled;
  expect((await harbour.history(id)).map(({ toState }) => toState)).toEqual(['dredging', 'in_use']);
  harbour.machine.does = {};
});

it('the step of a row that somebody else moves is aborted, and the next one begins', async () => {
  harbour.machine.does.dredging = (_, { signal }) =>
    new Promise((_resolve, reject) => signal.addEventListener('abort', reject));
  const id = await harbour.ask();
  const settled = harbour.worker({ stepMs: 3_600_000 }, harbour.machine, keeper).settle();
  await eventually(async () => (await harbour.read(id)).claimToken !== null);
  await harbour.send(id, 'CANCEL');
  await settled;
  await harbour.worker().settle();
  expect((await harbour.history(id)).map(({ toState }) => toState)).toEqual(['dredging', 'filling', 'free']);
  harbour.machine.does = {};
});

it('sends nothing where nothing is kept, and one beat at a time, though the last claim is dropped and another kept while a beat is under way', async () => {
  let [underWay, most] = [0, 0];
  const sent: string[] = [];
  const query = async (sql: string) => {
    sent.push(sql);
    most = Math.max(most, (underWay += 1));
    await delay(10);
    underWay -= 1;
    return [];
  };
  const quick = new ClaimKeeper({ query } as unknown as DataSource, 40);
  const of = { table: 'berth', key: 'berth_id', keyType: 'bigint', keyOf: () => '1' };
  const row = { claimToken: 'a', claimedUntil: null } as unknown as BerthEntity;
  const take = () => quick.keep(of, { row, leftMs: Infinity, sentAtMs: performance.now(), laneKind: 0 });
  for (let round = 0; round < 5; round += 1) {
    const first = take();
    for (const before = sent.length; sent.length === before;) await delay(1);
    quick.drop(first);
    const next = take();
    await delay(3);
    quick.drop(next);
    await delay(40);
  }
  expect([most, sent.every((sql) => sql.includes('berth'))]).toEqual([1, true]);
});
