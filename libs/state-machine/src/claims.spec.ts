import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { Harbour, type BerthEntity } from './berth-fixture.js';
import { Claims } from './claims.js';
import { Lanes } from './lanes.js';

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open();
});
beforeEach(() => harbour.dataSource.query('TRUNCATE berth'));
afterAll(() => harbour.close());

interface Row {
  lane: string;
  attempts: number;
  /** Milliseconds since it became due; less than 0: it is not yet; null: nothing is to be done. */
  dueForMs: number | null;
  isClaimed: boolean;
  /** Whether the definition has its state. */
  isKnown: boolean;
}

const claims = () => new Claims(harbour.machine, harbour.dataSource, 3_600_000);
const idle = (concurrency = 100, laneConcurrency = 100) => new Lanes({ concurrency, laneConcurrency });

async function insert(rows: readonly Partial<Row>[]): Promise<void> {
  await harbour.dataSource.query(
    `INSERT INTO berth (ship, state, lane, attempts, due_at, claim_token, claimed_until)
     SELECT place - 1, CASE WHEN is_known THEN 'dredging' ELSE 'of_a_later_release' END, lane, attempts, statement_timestamp() - due_for_ms * interval '1 millisecond',
       CASE WHEN is_claimed THEN gen_random_uuid() END, CASE WHEN is_claimed THEN clock_timestamp() + interval '1 hour' END
     FROM unnest($1::text[], $2::int[], $3::int[], $4::boolean[], $5::boolean[])
       WITH ORDINALITY row (lane, attempts, due_for_ms, is_claimed, is_known, place)`,
    [
      rows.map(({ lane = '' }) => lane),
      rows.map(({ attempts = 0 }) => attempts),
      rows.map(({ dueForMs = 1_000 }) => dueForMs),
      rows.map(({ isClaimed = false }) => isClaimed),
      rows.map(({ isKnown = true }) => isKnown),
    ],
  );
}

const lanesOf = (made: readonly { row: BerthEntity }[]) => made.map(({ row }) => row.lane);
const many = (count: number, row: Partial<Row>) => Array.from({ length: count }, () => row);

const row = fc.record<Row>({
  lane: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  attempts: fc.constantFrom(0, 0, 1, 2),
  dueForMs: fc.oneof({ weight: 5, arbitrary: fc.integer({ min: 1, max: 1_000_000 }) }, fc.constantFrom(-60_000, null)),
  isClaimed: fc.boolean(),
  isKnown: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, fc.constant(false)),
});
const load = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e', 'elsewhere'), { maxLength: 8 });

describe('law', () => {
  it('what is claimed is due, in a known state, in nobody else’s hands, within the room of its lane, and as much as there is room for', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(row, { maxLength: 30 }),
        load,
        fc.integer({ min: 1, max: 12 }),
        async (rows, underWay, limit) => {
          await harbour.dataSource.query('TRUNCATE berth');
          await insert(rows);
          const lanes = new Lanes({ concurrency: 1_000, laneConcurrency: 3 });
          for (const lane of underWay) lanes.begin(lane);
          const roomIn = (lane: string) => Math.max(0, 3 - underWay.filter((each) => each === lane).length);
          const isDue = ({ dueForMs, isClaimed, isKnown }: Row) =>
            dueForMs !== null && dueForMs >= 0 && !isClaimed && isKnown;
          const made = (await claims().make(limit, lanes)).map(({ row: { ship } }) => rows[Number(ship)]!);
          expect(new Set(made).size).toBe(made.length);
          expect(made.every(isDue)).toBe(true);
          let possible = 0;
          for (const lane of ['a', 'b', 'c', 'd', 'e']) {
            expect(made.filter((each) => each.lane === lane).length).toBeLessThanOrEqual(roomIn(lane));
            possible += Math.min(roomIn(lane), rows.filter((each) => each.lane === lane && isDue(each)).length);
          }
          expect(made.length).toBe(Math.min(limit, possible));
        },
      ),
      runs(100),
    );
  });

  it('whatever lanes hang, a row in a healthy lane is claimed before the second row of a hanging one', async () => {
    const hanging = fc.array(
      fc.record({ lane: fc.stringMatching(/^[a-l]{1,3}$/), rows: fc.integer({ min: 1, max: 20 }) }),
      {
        maxLength: 12,
      },
    );
    await fc.assert(
      fc.asyncProperty(
        hanging,
        fc.stringMatching(/^[a-l]{1,3}$/),
        fc.integer({ min: 1, max: 5 }),
        async (all, name, batch) => {
          const healthy = `healthy-${name}`;
          await harbour.dataSource.query('TRUNCATE berth');
          await insert([
            ...all.flatMap(({ lane, rows }) => many(rows, { lane, dueForMs: 1_000_000 })),
            { lane: healthy, dueForMs: 1 },
          ]);
          const lanes = idle();
          const order: string[] = [];
          const worker = claims();
          for (let made = await worker.make(batch, lanes); made.length > 0; made = await worker.make(batch, lanes)) {
            // None of them ever answers.
            for (const lane of lanesOf(made)) lanes.begin(lane);
            order.push(
              ...lanesOf(made).filter((lane) => lane === healthy),
              ...lanesOf(made).filter((lane) => lane !== healthy),
            );
          }
          const before = order.slice(0, order.indexOf(healthy));
          expect(order).toContain(healthy);
          expect(new Set(before).size).toBe(before.length);
        },
      ),
      runs(50),
    );
  });

  it('lanes take turns: of more than can be served, each is served before one is served again', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.stringMatching(/^[a-z]{1,4}$/), { minLength: 1, maxLength: 15 }),
        fc.integer({ min: 1, max: 4 }),
        async (names, limit) => {
          await harbour.dataSource.query('TRUNCATE berth');
          await insert(names.flatMap((lane) => [...many(3, { lane }), ...many(3, { lane, attempts: 1 })]));
          const worker = claims();
          const order: string[] = [];
          while (order.length < names.length)
            order.push(...lanesOf(await worker.make(Math.min(limit, names.length - order.length), idle(100, 1))));
          expect(order.toSorted()).toEqual(names.toSorted());
        },
      ),
      runs(30),
    );
  });

  it('among lanes that are served alike, those in which a row waits that has not failed go before the others', async () => {
    const tries = fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 4 });
    const lanes = fc.array(fc.record({ tries, hangs: fc.boolean() }), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(lanes, async (all) => {
        await harbour.dataSource.query('TRUNCATE berth');
        const isFailing = (lane: number) => all[lane]!.tries.every((attempts) => attempts > 0);
        await insert(
          all.flatMap((each, at) =>
            each.tries.map((attempts) => ({ attempts, lane: `${at}`, dueForMs: isFailing(at) ? 60_000 : 1_000 })),
          ),
        );
        const worker = claims();
        const served = new Lanes({ concurrency: 100, laneConcurrency: 1 });
        for (const [at, { hangs }] of all.entries()) if (hangs) served.hung(`${at}`);
        const order: boolean[] = [];
        for (const _ of all) {
          const [made] = await worker.make(1, served);
          served.begin(made!.row.lane);
          order.push(isFailing(Number(made!.row.lane)));
        }
        expect(order).toEqual(order.toSorted());
      }),
      runs(30),
    );
  });
});

describe('a claim', () => {
  it('keeps one half of all steps for the first step of each lane', async () => {
    await insert(['a', 'b', 'c'].flatMap((lane) => many(5, { lane })));
    const lanes = new Lanes({ concurrency: 10, laneConcurrency: 5 });
    const worker = claims();
    const first = lanesOf(await worker.make(lanes.free, lanes));
    for (const lane of first) lanes.begin(lane);
    expect([first.length, new Set(first).size]).toEqual([5, 3]);
    await insert(['d', 'e', 'f'].flatMap((lane) => many(5, { lane })));
    const second = lanesOf(await worker.make(lanes.free, lanes));
    expect(second.toSorted()).toEqual(['d', 'e', 'f']);
  });

  it('finds the one row of a lane at once beside 10,000 that have been due in another for longer', async () => {
    await insert([...many(10_000, { lane: 'full', dueForMs: 60_000 }), { lane: 'other', dueForMs: 1 }]);
    expect(lanesOf(await claims().make(2, idle(10, 1))).toSorted()).toEqual(['full', 'other']);
  });

  it('waits for no row that a transaction has locked: the next one of its lane is claimed', async () => {
    await insert([
      { lane: 'a', dueForMs: 2_000 },
      { lane: 'a', dueForMs: 1_000 },
    ]);
    await harbour.transactions.run(async (manager) => {
      await manager.query(`SELECT FROM berth WHERE ship = '0' FOR UPDATE`);
      expect((await claims().make(5, idle(10, 1))).map(({ row }) => row.ship)).toEqual(['1']);
    });
  });

  it.each<[string, (worker: ReturnType<typeof claims>, keys: string[]) => Promise<unknown>, string]>([
    ['rows past their deadline', (worker) => worker.makeOverdue(5, idle()), 'claim_token IS NOT NULL'],
    ['what was parked', (worker) => worker.unpark(), 'parked_until IS NULL'],
    ['what a sweep found', (worker, keys) => worker.touch(keys), 'parked_until IS NULL'],
  ])('nor does anything that looks for %s', async (_, look, seen) => {
    await insert([{ dueForMs: null }, { dueForMs: null }]);
    const rows = await harbour.dataSource.query<{ berth_id: string }[]>(
      `UPDATE berth SET deadline_at = now() - interval '1 second', parked_until = now() - interval '1 second' RETURNING berth_id`,
    );
    const keys = (rows as unknown as [{ berth_id: string }[]])[0].map(({ berth_id }) => berth_id);
    await harbour.transactions.run(async (manager) => {
      await manager.query(`SELECT FROM berth WHERE ship = '0' FOR UPDATE`);
      await look(claims(), keys);
      expect(await harbour.dataSource.query(`SELECT ship FROM berth WHERE ${seen}`)).toEqual([{ ship: '1' }]);
    });
  });

  it('is made by one of several that are made at once', async () => {
    await insert(many(200, { lane: 'a' }));
    const ships: string[] = [];
    while (ships.length < 200) {
      const made = await Promise.all(Array.from({ length: 8 }, () => claims().make(100, idle())));
      ships.push(...made.flat().map(({ row }) => row.ship));
    }
    expect([new Set(ships).size, ships.length]).toEqual([200, 200]);
  });
});

describe('deadlines', () => {
  it('are kept whatever goes on in a lane: what has passed its deadline is given up without waiting there', async () => {
    harbour.machine.does.dredging = () => new Promise(() => undefined);
    harbour.machine.does.filling = () => Promise.resolve({ againAfterMs: 60_000 });
    await insert(many(20, { lane: 'a' }));
    const worker = harbour.worker({ laneConcurrency: 1, stepMs: 60_000 });
    worker.start();
    await harbour.eventuallyBegun(1);
    await harbour.dataSource.query(`UPDATE berth SET deadline_at = clock_timestamp() WHERE claim_token IS NULL`);
    await harbour.eventuallyIn('filling', 19);
    await worker.stop();
    harbour.machine.does = {};
  });
});
