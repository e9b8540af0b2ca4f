import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { CallContext, UserCaller } from '@atoll/contracts';
import type { DeadLetterPath, DeadLettersOfService } from '@atoll/contracts/operator';
import { createIdempotencyTable, newId } from '@atoll/database';
import { AppError } from '@atoll/errors';
import {
  allStatementsDuring,
  errorOf,
  expectErrors,
  mostRowsRead,
  startNats,
  type NatsServer,
  type TestDatabase,
} from '@atoll/testing';
import { DataSource } from 'typeorm';
import { DeadLetterDesk, deadLettersController } from './dead-letter-desk.js';
import { DeadLetters } from './dead-letters.js';
import { eventually } from './world/eventually-fixture.js';
import { shopDatabase } from './world/shop-fixture.js';
import { inProcess } from './world/topology-fixture.js';
import { World } from './world/world-fixture.js';

let database: TestDatabase;
let nats: NatsServer;
let world: World;
let isMended: boolean;

beforeAll(async () => {
  [database, nats] = await Promise.all([shopDatabase(), startNats()]);
  world = await World.open(inProcess, { database: database.url, broker: nats.url });
});
beforeEach(async () => {
  expectErrors(/letters: orders\.placed .* is a dead letter after 3 tries/);
  isMended = false;
  world.script = (_payload, consumer) => {
    if (consumer === 'letters' && !isMended) throw new Error('the printer is out of paper');
  };
  await world.start();
});
afterEach(() => world.reset());
afterAll(async () => {
  await world.close();
  await nats.stop();
  await database.drop();
});

type Operations = Record<'list' | 'replay' | 'drop', (input: object, context: CallContext) => Promise<unknown>>;

const operator = { kind: 'user', userId: newId(), platformAdmin: true, teams: [] } as unknown as UserCaller;
const contextOf = (caller: CallContext['caller'] = operator, more: Partial<CallContext> = {}): CallContext => ({
  requestId: 'request-1',
  deadlineAtMs: Date.now() + 10_000,
  caller,
  ...more,
});

function operations(): Operations {
  const Controller = deadLettersController('mail');
  return new Controller(world.app('mail').get(DeadLetterDesk)) as Operations;
}
const list = (asked: object = {}) => operations().list(asked, contextOf()) as Promise<DeadLettersOfService>;
const pathOf = (dead_letter_id: string) => ({ service: 'mail', dead_letter_id }) as unknown as DeadLetterPath;

async function deadLetter(...numbers: number[]): Promise<void> {
  await world.orders.place(numbers);
  await eventually(async () => expect((await list({ limit: 100 })).data).toHaveLength(numbers.length));
}

describe('the dead letters of a service, for its operator', () => {
  it('are listed with event, payload and reason, the latest failure first, each once over all pages', async () => {
    await deadLetter(1, 2, 3, 4, 5);
    const whole = (await list()).data;
    expect(whole.map(({ last_failed_at }) => last_failed_at)).toEqual(
      whole
        .map(({ last_failed_at }) => last_failed_at)
        .toSorted()
        .reverse(),
    );
    expect(whole[0]).toMatchObject({
      service: 'mail',
      consumer: 'letters',
      event_name: 'orders.placed',
      payload: expect.stringMatching(/^\{"number": \d\}$/),
      error: 'Error: the printer is out of paper',
      tries: 3,
      replay_requested_at: null,
    });
    const paged: string[] = [];
    for (let cursor: string | undefined, pages = 0; pages < 4; pages += 1) {
      const page = await list({ limit: 2, ...(cursor && { cursor }) });
      paged.push(...page.data.map(({ dead_letter_id }) => dead_letter_id));
      if (!page.next_cursor) break;
      cursor = page.next_cursor;
    }
    expect(paged).toEqual(whole.map(({ dead_letter_id }) => dead_letter_id));
  });

  it('are read a page at a time, and those that are to be tried again by themselves, however many there are', async () => {
    await deadLetter(1);
    const dataSource = world.app('mail').get(DataSource);
    await dataSource.query(
      `INSERT INTO dead_letter (id, consumer, event_id, event_name, payload, occurred_at, last_error, tries, first_failed_at, last_failed_at)
       SELECT gen_random_uuid(), 'letters', gen_random_uuid(), 'orders.placed', '{}', now(), 'Error', 3, now(), now() + n * interval '1 microsecond'
       FROM generate_series(1, 10000) n`,
    );
    await dataSource.query('VACUUM ANALYZE dead_letter');
    const [whole, pages] = [(await list({ limit: 40 })).data, [] as DeadLettersOfService[]];
    const sent = await allStatementsDuring(async () => {
      for (let at = 0; at < 2; at += 1)
        pages.push(await list({ limit: 20, ...(pages[0] && { cursor: pages[0].next_cursor }) }));
      await world.app('mail').get(DeadLetters).retryRequested();
    });
    expect(pages.flatMap(({ data }) => data)).toEqual(whole);
    const looks = sent.filter(({ text }) => text.includes('FROM dead_letter'));
    expect(looks.length).toBeGreaterThanOrEqual(3);
    for (const look of looks) expect(await mostRowsRead(dataSource, look)).toBeLessThan(100);
  });

  it('show no more than an excerpt of a payload, however long it is', async () => {
    await deadLetter(1);
    await world
      .app('mail')
      .get(DataSource)
      .query(`UPDATE dead_letter SET payload = to_jsonb(repeat('x', 1000000)), last_error = repeat('y', 9000)`);
    const [letter] = (await list()).data;
    expect([letter?.payload.length, letter?.error.length]).toEqual([4_000, 4_000]);
  });

  it('are handled by the service that runs, where one is replayed after the cause was mended', async () => {
    await deadLetter(1);
    isMended = true;
    const [letter] = (await list()).data;
    const { retryAsked } = world.app('mail').get(DeadLetters);
    const seen: ReturnType<typeof list>[] = [];
    const { ring } = retryAsked;
    const rung = jest.spyOn(retryAsked, 'ring').mockImplementation(() => {
      seen.push(list());
      ring();
    });
    const accepted = await operations().replay(pathOf(letter?.dead_letter_id ?? ''), contextOf());
    expect(accepted).toMatchObject({ dead_letter_id: letter?.dead_letter_id, replay_requested_at: expect.any(String) });
    // It need not wait for the next look of its service.
    expect(rung).toHaveBeenCalledTimes(1);
    rung.mockRestore();
    for (const { data } of await Promise.all(seen))
      expect(data.filter(({ replay_requested_at }) => replay_requested_at === null)).toEqual([]);
    await eventually(async () => expect((await list()).data).toEqual([]));
    expect(await world.noted('letters')).toEqual([1]);
  });

  it('stay with one try more, where a replay fails again', async () => {
    await deadLetter(1);
    const [letter] = (await list()).data;
    await operations().replay(pathOf(letter?.dead_letter_id ?? ''), contextOf());
    await eventually(async () => expect((await list()).data).toMatchObject([{ tries: 4, replay_requested_at: null }]));
  });

  it('are replayed although another one before them finds something unavailable each time', async () => {
    await deadLetter(1, 2);
    world.script = ({ number }) => {
      if (number === 1) throw new AppError('unavailable', 'The printer is away.');
    };
    const letters = (await list()).data.toSorted((one, other) => (one.payload < other.payload ? -1 : 1));
    for (const { dead_letter_id } of letters) await operations().replay(pathOf(dead_letter_id), contextOf());
    await eventually(async () => expect(await world.noted('letters')).toEqual([2]));
    expect((await list()).data).toMatchObject([
      { payload: '{"number": 1}', tries: 3, replay_requested_at: expect.any(String) },
    ]);
  });

  it('answer a replay under one Idempotency-Key alike, though the letter is gone by then', async () => {
    await deadLetter(1);
    isMended = true;
    const runner = world.app('mail').get(DataSource).createQueryRunner();
    await createIdempotencyTable(runner, 'mail');
    await runner.release();
    const [letter] = (await list()).data;
    const idempotency = { key: 'once', scope: 'replay', fingerprint: 'x' };
    const replay = () =>
      operations().replay(pathOf(letter?.dead_letter_id ?? ''), contextOf(operator, { idempotency }));
    const first = await replay();
    await eventually(async () => expect((await list()).data).toEqual([]));
    expect(await replay()).toEqual(first);
  });

  it('are gone without their effect, where one is dropped', async () => {
    await deadLetter(1, 2);
    const [first, second] = (await list()).data;
    expect(await operations().drop(pathOf(first?.dead_letter_id ?? ''), contextOf())).toEqual({});
    expect((await list()).data).toEqual([second]);
    expect(await world.noted('letters')).toEqual([]);
  });

  it('fail again each by itself', async () => {
    await deadLetter(1, 2);
    const [first, second] = (await list()).data;
    await operations().replay(pathOf(second?.dead_letter_id ?? ''), contextOf());
    const tries = async () => Object.fromEntries((await list()).data.map((one) => [one.event_id, one.tries]));
    await eventually(async () =>
      expect(await tries()).toEqual({ [first?.event_id ?? '']: 3, [second?.event_id ?? '']: 4 }),
    );
  });

  it('are replayed and dropped each by itself', async () => {
    await deadLetter(1, 2, 3);
    const [first, second, third] = (await list()).data;
    for (const letter of [second, first]) {
      const answer = await operations().replay(pathOf(letter?.dead_letter_id ?? ''), contextOf());
      expect(answer).toMatchObject({ dead_letter_id: letter?.dead_letter_id, event_id: letter?.event_id });
    }
    await operations().drop(pathOf(second?.dead_letter_id ?? ''), contextOf());
    const left = (await list()).data.map(({ event_id }) => event_id);
    expect(left).toContain(third?.event_id);
    expect(left).not.toContain(second?.event_id);
  });

  it('are not found where there is none', async () => {
    await deadLetter(1);
    for (const act of ['replay', 'drop'] as const) {
      expect(await errorOf(operations()[act](pathOf(newId()), contextOf()))).toMatchObject({ code: 'not_found' });
    }
  });

  it('are nobody else’s to see, to replay or to drop', async () => {
    await deadLetter(1);
    const [letter] = (await list()).data;
    const stranger = { ...operator, platformAdmin: false };
    for (const act of ['list', 'replay', 'drop'] as const) {
      const refused = operations()[act](pathOf(letter?.dead_letter_id ?? ''), contextOf(stranger));
      expect([act, await errorOf(refused)]).toMatchObject([act, { code: 'forbidden' }]);
    }
    expect((await list()).data).toHaveLength(1);
  });
});
