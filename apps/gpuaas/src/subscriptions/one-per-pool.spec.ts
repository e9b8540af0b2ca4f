import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { gpuaasBatches, subscriptions, type Subscribe } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { isAppError } from '@atoll/errors';
import { statementsOf } from '@atoll/testing';
import { errorOf, GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';
import { SubscriptionAccepting } from './subscription-accepting.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const ask = (terms: Partial<Subscribe> & { pool_id: string }, of = team) =>
  fixture.call(subscriptions.subscribe, { team_id: of.team_id, vgpus: 1, unique: true, ...terms }, of.member);
const count = async (calls: Promise<unknown>[]): Promise<Record<string, number>> => {
  const answers = await Promise.allSettled(calls);
  const words = answers.map((one) =>
    one.status === 'fulfilled' ? 'accepted' : isAppError(one.reason) ? one.reason.message : 'failed',
  );
  return Object.fromEntries([...Map.groupBy(words, (word) => word)].map(([word, all]) => [word, all.length]));
};

interface Asked {
  readonly isUnique: boolean;
  readonly values: { readonly vgpus: number };
}

/** Has requests decided on by `add`, in place of what gathers them. Returns what undoes it. */
function decideBy(add: (request: Asked, accept: (all: Asked[]) => Promise<unknown[]>) => Promise<unknown>): () => void {
  interface Shared {
    add(key: string, place: object, request: Asked): Promise<unknown>;
    workTogether(all: { request: Asked; call: undefined }[]): Promise<unknown[]>;
  }
  const accepting = fixture.get(SubscriptionAccepting) as unknown as { shared: Pick<Shared, 'add'> };
  const shared = accepting.shared as Shared;
  accepting.shared = {
    add: async (_key, _place, asked) => {
      const answer = await add(asked, (all) =>
        shared.workTogether(all.map((request) => ({ request, call: undefined }))),
      );
      if (isAppError(answer)) throw answer;
      return answer;
    },
  };
  return () => void (accepting.shared = shared);
}

/** As if each request were made to a replica of its own, which knows nothing of the others'. */
const asManyReplicas = () => decideBy(async (request, accept) => (await accept([request]))[0]);

/**
 * Waits for so many requests, and has them decided in one transaction: those that must be the only ones come last, and
 * of alike ones those that want more first.
 */
function asOneBatch(size: number): () => void {
  const gathered: Asked[] = [];
  const full = Promise.withResolvers<Map<Asked, unknown>>();
  return decideBy(async (request, accept) => {
    gathered.push(request);
    if (gathered.length === size) {
      const inOrder = gathered.toSorted(
        (one, two) => Number(one.isUnique) - Number(two.isUnique) || two.values.vgpus - one.values.vgpus,
      );
      full.resolve(accept(inOrder).then((answers) => new Map(inOrder.map((each, at) => [each, answers[at]]))));
    }
    return (await full.promise).get(request);
  });
}

let restore = (): void => undefined;
afterEach(() => restore());

const taken = 'Already subscribed to this pool.';

describe('a subscription that must be the only one of its team on the pool', () => {
  it('is one of twenty that are asked for at once, and the others book nothing', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 40 });
    const other = await fixture.team();
    const calls = Array.from({ length: 20 }, (_, at) => ask({ pool_id }, at % 2 === 0 ? team : other));
    expect(await count(calls)).toEqual({ accepted: 2, [taken]: 18 });
    const [row] = await fixture.query<{ held: number }>(
      `SELECT count(*)::int AS held FROM lease JOIN gpu USING (gpu_id) WHERE pool_id = $1`,
      [pool_id],
    );
    expect(row?.held).toBe(2);
  });

  it('is one also where each is asked of another replica', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 40, overcommit: 2 });
    restore = asManyReplicas();
    expect(await count(Array.from({ length: 12 }, () => ask({ pool_id })))).toEqual({ accepted: 1, [taken]: 11 });
  });

  it('is waited for in one order of teams, so that no two batches lock each other out', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 40 });
    const teams = [await fixture.team(), await fixture.team()].toSorted((one, two) =>
      one.team_id > two.team_id ? -1 : 1,
    );
    restore = asOneBatch(2);
    const sent = await statementsOf(() => Promise.all(teams.map((of, at) => ask({ pool_id, vgpus: 2 - at }, of))));
    const [locks] = sent.filter(({ text }) => text.includes(`' only '`));
    expect(locks?.values).toEqual([teams.map(({ team_id }) => `${pool_id} ${team_id}`).toSorted()]);
  });

  it('is refused beside one that need not be, in one batch too, and says nothing to those that need not be', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 40 });
    restore = asOneBatch(4);
    const calls = [true, false, false, false].map((unique) => ask({ pool_id, unique }));
    expect(await count(calls)).toEqual({ accepted: 3, [taken]: 1 });
    restore();
    expect(await count([ask({ pool_id }), ask({ pool_id, unique: false })])).toEqual({ accepted: 1, [taken]: 1 });
  });

  it('is not refused for one of the same batch that is refused itself', async () => {
    const { pool_id, pool_name } = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    restore = asOneBatch(3);
    const calls = [5, 2, 1].map((vgpus) => ask({ pool_id, vgpus }));
    expect(await count(calls)).toEqual({
      [`Pool ${pool_name} has no capacity for 5 vGPUs of mps-4. Available: 4 of mps-4.`]: 1,
      accepted: 1,
      [taken]: 1,
    });
    expect((await calls[1])?.vgpus_allocated).toBe(2);
  });

  it('may come after one that is given back, and to another pool', async () => {
    const [one, two] = [
      await fixture.pool({ mechanism: 'mps', replicas: 4 }),
      await fixture.pool({ mechanism: 'mps', replicas: 4 }),
    ];
    const first = await ask({ pool_id: one.pool_id });
    await ask({ pool_id: two.pool_id });
    expect((await errorOf(ask({ pool_id: one.pool_id }))).code).toBe('conflict');
    await fixture.settle();
    await fixture.call(gpuaasBatches.end, { subscription_id: first.subscription_id }, team.member);
    expect((await ask({ pool_id: one.pool_id })).status).toBe('subscribing');
  });
});

describe('where subscriptions are', () => {
  it('is told of those of the caller’s teams alone, and of regions to everybody', async () => {
    const { pool_id, pool_name, region_id } = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    const other = await fixture.team('viewer');
    const asked = {
      subscription_ids: [(await ask({ pool_id })).subscription_id, '999999'],
      region_ids: [region_id, '999999'],
    };
    const find = (by: ToldTeam['member'] | undefined) => fixture.call(gpuaasBatches.places, asked, by);
    const place = {
      subscription_id: asked.subscription_ids[0],
      pool_id,
      pool_name,
      board: 'A100-80GB',
      v_ram_gb: expect.stringMatching(/^\d/),
    };
    const regions = [expect.objectContaining({ region_id })];
    expect(await find(team.member)).toEqual({ subscriptions: [place], regions });
    expect(await find(undefined)).toEqual({ subscriptions: [place], regions });
    expect(await find(other.member)).toEqual({ subscriptions: [], regions });
    expect(await fixture.call(gpuaasBatches.places, {}, team.member)).toEqual({ subscriptions: [], regions: [] });
  });
});

describe('ending a subscription of a team and a pool that are named', () => {
  it('ends what runs on it, twice with the same answer', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    const held = await ask({ pool_id });
    await fixture.settle();
    await fixture.start(team, held);
    await fixture.settle();
    const named = { subscription_id: held.subscription_id, team_id: team.team_id, pool_id };
    expect((await fixture.call(gpuaasBatches.end, named, team.member)).status).toBe('unsubscribing');
    await fixture.settle();
    expect((await fixture.call(gpuaasBatches.end, named, team.member)).status).toBe('unsubscribed');
  });

  it('makes its key free again where it is undone, and the key of no other', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    const key = { key: newId(), fingerprint: 'body' };
    const again = () =>
      fixture.call(
        subscriptions.subscribe,
        { team_id: team.team_id, pool_id, vgpus: 1, unique: true },
        team.member,
        key,
      );
    const undo = ({ subscription_id }: { subscription_id: string }, by = team) =>
      fixture.call(gpuaasBatches.undo, { subscription_id }, by.member, key);
    const first = await again();
    expect(await again()).toEqual(first);
    await undo(first);
    const second = await again();
    expect(second.subscription_id).not.toBe(first.subscription_id);
    // Of a call that comes late.
    await undo(first);
    expect(await again()).toEqual(second);
    expect((await errorOf(undo(second, await fixture.team()))).code).toBe('not_found');
    expect(await again()).toEqual(second);
  });

  it('does not find it by another team or pool, nor for another team, nor for who may not use it', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    const { subscription_id } = await ask({ pool_id });
    const [other, viewer] = [await fixture.team(), await fixture.team('viewer')];
    const codeOf = async (named: object, by = team) =>
      (await errorOf(fixture.call(gpuaasBatches.end, { subscription_id, ...named }, by.member))).code;
    expect(await codeOf({ team_id: other.team_id })).toBe('not_found');
    expect(await codeOf({ pool_id: '999999' })).toBe('not_found');
    expect(await codeOf({}, other)).toBe('not_found');
    expect(await codeOf({ team_id: other.team_id }, other)).toBe('not_found');
    expect(await codeOf({}, viewer)).toBe('not_found');
  });
});
