import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { subscriptions, type CreatePool, type Pool, type Subscription } from '@atoll/contracts/gpuaas';
import { isAppError } from '@atoll/errors';
import { expectErrors, inTransactionBeside, runs, untilLockWaits } from '@atoll/testing';
import fc from 'fast-check';
import { DataSource } from 'typeorm';
import { errorOf, GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';
import { askedBehindLock } from './behind-lock-fixture.js';
import { SubscriptionResizing } from './subscription-resizing.js';
import { SubscriptionSteps } from './subscription-steps.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => fixture.stop());

interface Held {
  readonly subscription_id: string;
  readonly of: ToldTeam;
}

const resize = ({ subscription_id, of }: Held, vgpus: number, key?: string) =>
  fixture.call(
    subscriptions.resize,
    { subscription_id, vgpus },
    of.member,
    key === undefined ? undefined : { key, fingerprint: 'f' },
  );
const held = async (of: ToldTeam, { pool_id }: Pool, vgpus: number): Promise<Held> => ({
  of,
  subscription_id: (await fixture.subscribe(of, { pool_id, vgpus })).subscription_id,
});
const leases = async ({ subscription_id }: Held) =>
  (await fixture.query('SELECT FROM lease WHERE subscription_id = $1', [subscription_id])).length;

/** What is told of an answer: the size, and whether it is still to come, or the code of the refusal. */
const toldBy = (answer: Promise<Subscription>): Promise<string> =>
  answer.then(
    ({ vgpus_allocated, resize }) => (resize ? `to ${resize.vgpus}` : `${vgpus_allocated}`),
    (error: unknown) => {
      if (!isAppError(error)) throw error;
      return error.code;
    },
  );

/** The numbers of requests that transactions had of these, which came while a first one waited. */
async function behind(plug: Held, ask: () => Promise<unknown>[]): Promise<number[]> {
  const asked = jest.spyOn(fixture.get(SubscriptionResizing), 'resize');
  return (await askedBehindLock(fixture, plug.subscription_id, asked, () => resize(plug, 1), ask)).sizes;
}

interface Asked {
  readonly at: number;
  readonly vgpus: number;
}

/** What one after the other would be told, in this order, and the sizes when what grows has grown. */
function inTurn(order: readonly Asked[], before: readonly number[], used: readonly number[], capacity: number) {
  const sizes = [...before];
  const isGrowing = before.map(() => false);
  let free = capacity - before.reduce((sum, size) => sum + size, 0);
  const answers = new Map(
    order.map((asked) => {
      const { at, vgpus } = asked;
      const more = vgpus - sizes[at]!;
      if (isGrowing[at] || vgpus < used[at]!) return [asked, 'conflict'];
      if (more > free) return [asked, 'insufficient_capacity'];
      free -= more;
      sizes[at] = vgpus;
      isGrowing[at] = more > 0;
      return [asked, more > 0 ? `to ${vgpus}` : `${vgpus}`];
    }),
  );
  return { answers, sizes };
}

function ordersOf<T>(all: readonly T[]): T[][] {
  return all.length === 0
    ? [[]]
    : all.flatMap((one, at) => ordersOf(all.toSpliced(at, 1)).map((rest) => [one, ...rest]));
}

it.each<[string, Partial<CreatePool>, number]>([
  ['once', { mechanism: 'mps', replicas: 4 }, 12],
  ['more than once', { mechanism: 'mps', replicas: 2, overcommit: 2 }, 12],
])(
  'law: resizes that share transactions are told, and leave, what they would in some order one after the other (slices are sold %s)',
  async (_, terms, capacity) => {
    const pool = await fixture.pool(terms, { count: 3 });
    const other = await fixture.team();
    const plug = await held(team, pool, 1);
    const all = [
      await held(team, pool, 3),
      await held(other, pool, 2),
      await held(team, pool, 1),
      await held(other, pool, 1),
    ];
    await fixture.settle();
    await fixture.start(team, all[0]!, 2);
    await fixture.settle();
    const used = [2, 0, 0, 0];
    let sizes = [3, 2, 1, 1];
    const asked = fc.record({ at: fc.nat({ max: 3 }), vgpus: fc.integer({ min: 1, max: 7 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 2, maxLength: 5 }), async (requests) => {
        let answers: Promise<string>[] = [];
        const batches = await behind(
          plug,
          () => (answers = requests.map(({ at, vgpus }) => toldBy(resize(all[at]!, vgpus)))),
        );
        // Each subscription is changed once by a transaction.
        const most = Math.max(...requests.map((one) => requests.filter(({ at }) => at === one.at).length));
        expect(batches).toHaveLength(most);
        const told = await Promise.all(answers);
        const possible = ordersOf(requests).map((order) => inTurn(order, sizes, used, capacity - 1));
        await fixture.settle();
        const found = await Promise.all(all.map((one) => fixture.subscription(one.of, one)));
        sizes = found.map(({ vgpus_allocated }) => vgpus_allocated);
        expect(possible.map(({ answers, sizes }) => [requests.map((one) => answers.get(one)), sizes])).toContainEqual([
          told,
          sizes,
        ]);
        if (pool.overcommit === 1) expect(await Promise.all(all.map(leases))).toEqual(sizes);
        const free = capacity - 1 - sizes.reduce((sum, size) => sum + size, 0);
        const { message } = await errorOf(fixture.subscribe(team, { pool_id: pool.pool_id, vgpus: 100 }));
        expect(Number(/Available: (\d+)/.exec(message)?.[1] ?? 0)).toBe(free);
      }),
      { ...runs(12), endOnFailure: true },
    );
  },
  600_000,
);

/** Four subscriptions of one vGPU in a pool of eight, and one in front of them. */
async function four(): Promise<{ plug: Held; all: Held[]; pool: Pool & Inventory }> {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 9 });
  const [plug, ...all] = await Promise.all([1, 2, 3, 4, 5].map(() => held(team, pool, 1)));
  await fixture.settle();
  return { plug: plug!, all, pool };
}

it('one that fails of a fault in the product fails alone: the others of its transaction are done, each once', async () => {
  expectErrors(/a fault/);
  const { plug, all } = await four();
  const steps = fixture.get(SubscriptionSteps);
  const move = steps.move.bind(steps);
  let answers: Promise<string>[] = [];
  const poisoned = all[1]!.subscription_id;
  const batches = await behind(plug, () => {
    jest.spyOn(steps, 'move').mockImplementation(async (manager, row, ...rest) => {
      if (row.subscriptionId === poisoned) throw new Error('a fault');
      return move(manager, row, ...rest);
    });
    return (answers = all.map((one) => toldBy(resize(one, 2))));
  });
  expect(batches).toEqual([4, 1, 1, 1, 1]);
  expect(await Promise.all(answers)).toEqual(['to 2', 'internal', 'to 2', 'to 2']);
  expect(await Promise.all(all.map(leases))).toEqual([2, 1, 2, 2]);
});

it('where the connection is lost in the middle, all that share the transaction are told so, nothing of it is kept, and each may be asked for again', async () => {
  const { plug, all } = await four();
  let answers: Promise<string>[] = [];
  let batches: Promise<number[]> | undefined;
  await inTransactionBeside(fixture.get(DataSource), async (holder) => {
    // What comes last: rows and leases have been written by then.
    await holder.query('LOCK TABLE capacity_change IN EXCLUSIVE MODE');
    batches = behind(plug, () => {
      answers = all.map((one, at) => toldBy(resize(one, at === 0 ? 1 : 2)));
      return [...answers];
    });
    const [pid] = await untilLockWaits(fixture, { text: 'INSERT INTO capacity_change' });
    await fixture.query('SELECT pg_terminate_backend($1, 5000)', [pid]);
  });
  expect(await batches).toEqual([4]);
  expect(await Promise.all(answers)).toEqual(Array.from({ length: 4 }, () => 'unavailable'));
  expect(await Promise.all(all.map(leases))).toEqual([1, 1, 1, 1]);
  expect(await Promise.all(all.map((one) => toldBy(resize(one, 2))))).toEqual(Array.from({ length: 4 }, () => 'to 2'));
});

it('under idempotency keys each is done once, and is answered by what is kept', async () => {
  const { plug, all } = await four();
  let answers: Promise<string>[] = [];
  const ask = () => (answers = all.map((one, at) => toldBy(resize(one, 2, `key ${at}`))));
  expect(await behind(plug, ask)).toEqual([4]);
  const told = ['to 2', 'to 2', 'to 2', 'to 2'];
  expect(await Promise.all(answers)).toEqual(told);
  await fixture.settle();
  expect(await behind(plug, ask)).toEqual([4]);
  expect(await Promise.all(answers)).toEqual(told);
});

it('the resize of one team is in the next transaction, however many of another team wait', async () => {
  const pool = await fixture.pool({ mechanism: 'mps', replicas: 48, overcommit: 5 });
  const plug = await held(team, pool, 1);
  const many = await Promise.all(Array.from({ length: 110 }, () => held(team, pool, 1)));
  const other = await held(await fixture.team(), pool, 1);
  await fixture.settle();
  const answered: Held[] = [];
  const batches = await behind(plug, () =>
    [...many, other].map((one) => resize(one, 2).then(() => answered.push(one))),
  );
  expect(batches).toEqual([100, 11]);
  expect(answered.indexOf(other)).toBeLessThan(100);
});
