import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { subscriptions, workloads } from '@atoll/contracts/gpuaas';
import { Statements } from '@atoll/database';
import { allStatementsDuring, mostRowsRead, statementsOf } from '@atoll/testing';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';
import { forgetHeldSlices } from './held-slices.js';

let fixture: GpuaasFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
beforeEach(async () => {
  team = await fixture.team();
});
afterAll(() => fixture.stop());

interface Row {
  lease_id: string;
  gpu_id: string;
  is_slot: boolean;
  gpu_instance_id: number | null;
  held_from: Date;
  held_until: Date | null;
}
type Held = { subscription_id: string };

const rowsOf = ({ subscription_id }: Held) =>
  fixture.query<Row>('SELECT * FROM held_slice WHERE subscription_id = $1 ORDER BY held_slice_id', [subscription_id]);
const open = (rows: Row[]) => rows.filter(({ held_until }) => held_until === null);
const twice = <Item>(item: Item) => [item, item];
async function active(pool_id: string, vgpus = 1): Promise<Held> {
  const held = await fixture.subscribe(team, { pool_id, vgpus });
  await fixture.settle();
  return held;
}

describe('the times in which a slice was held', () => {
  it('begin when it is leased, end when it is given back, and never overlap those of the next tenant', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['7g.80gb'] });
    const first = await active(pool_id);
    expect(await rowsOf(first)).toEqual([
      expect.objectContaining({ is_slot: true, gpu_instance_id: expect.any(Number), held_until: null }),
    ]);
    await fixture.unsubscribe(team, first);
    await fixture.settle();
    const second = await active(pool_id);
    const [[before], [after]] = [await rowsOf(first), await rowsOf(second)];
    expect(before?.held_until?.getTime()).toBeLessThanOrEqual(after?.held_from.getTime() ?? NaN);
    expect(before?.held_until?.getTime()).toBeGreaterThan(before?.held_from.getTime() ?? NaN);
  });

  it('begin, for what a subscription grows by, when the nodes have confirmed it; and end for what it gives back alone', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['1g.10gb'] });
    const held = await active(pool_id, 2);
    await fixture.call(subscriptions.resize, { subscription_id: held.subscription_id, vgpus: 4 }, team.member);
    expect(await rowsOf(held)).toHaveLength(2);
    await fixture.settle();
    expect(open(await rowsOf(held))).toHaveLength(4);
    await fixture.call(subscriptions.resize, { subscription_id: held.subscription_id, vgpus: 1 }, team.member);
    const rows = await rowsOf(held);
    expect([rows.length, open(rows).length]).toEqual([4, 1]);
  });

  it('tell slots from turns: the whole device is what is measured from the instant it begins to fall back', async () => {
    const { pool_id } = await fixture.pool({
      mechanism: 'mps',
      replicas: 2,
      allow_fallback: true,
      temporal_replicas: 4,
    });
    const first = await active(pool_id, 2);
    const second = await active(pool_id);
    const slotsOf = async (held: Held) =>
      (await rowsOf(held)).map(({ is_slot, held_until }) => [is_slot, held_until === null]);
    expect(await slotsOf(first)).toEqual([...twice([true, false]), ...twice([false, true])]);
    expect(await slotsOf(second)).toEqual([[false, true]]);
    const rows = await rowsOf(first);
    for (const { lease_id, held_from } of open(rows)) {
      expect(rows.find((row) => row.lease_id === lease_id && row.is_slot)?.held_until).toEqual(held_from);
    }
    await fixture.unsubscribe(team, second);
    await fixture.settle();
    expect(await slotsOf(first)).toEqual([...twice([true, false]), ...twice([false, false]), ...twice([true, true])]);
  });

  it('are those of its workloads where a subscription is an entitlement', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 2, overcommit: 2 });
    const held = await active(pool_id, 2);
    expect(await rowsOf(held)).toEqual([]);
    const workload = await fixture.start(team, held);
    await fixture.settle();
    expect(open(await rowsOf(held))).toHaveLength(1);
    await fixture.call(workloads.stop, { workload_id: workload.workload_id }, team.member);
    await fixture.settle();
    const rows = await rowsOf(held);
    expect([rows.length, open(rows).length]).toEqual([1, 0]);
  });

  it('are forgotten when no window reaches them any more, and not before', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['7g.80gb'] });
    const held = await active(pool_id);
    await fixture.unsubscribe(team, held);
    await fixture.settle();
    const end = (days: number) =>
      fixture.query(
        `UPDATE held_slice SET held_until = clock_timestamp() - $2 * interval '1 day' WHERE subscription_id = $1`,
        [held.subscription_id, days],
      );
    await end(30.5);
    await fixture.settle();
    expect(await rowsOf(held)).toHaveLength(1);
    await end(31.5);
    await fixture.settle();
    expect(await rowsOf(held)).toEqual([]);
  });

  it('that a window may still reach are not read by each look for those that none reaches', async () => {
    const { pool_id } = await fixture.pool({ profiles: ['7g.80gb'] });
    const { subscription_id } = await active(pool_id);
    await fixture.query(
      `INSERT INTO held_slice (lease_id, subscription_id, gpu_id, is_slot, held_from, held_until)
       SELECT lease_id, subscription_id, gpu_id, is_slot, held_from, clock_timestamp() FROM held_slice, generate_series(1, 10000)
       WHERE subscription_id = $1`,
      [subscription_id],
    );
    await fixture.query('ANALYZE held_slice');
    const looks = await allStatementsDuring(() => forgetHeldSlices(fixture.get(Statements)));
    const own = looks.filter(({ text }) => text.startsWith('DELETE FROM held_slice'));
    expect(own).not.toEqual([]);
    for (const look of own) expect(await mostRowsRead(fixture, look)).toBeLessThan(100);
  });

  it('that a window does not reach are not read for its metrics, nor those of other subscriptions', async () => {
    const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 4 });
    const [asked, other] = [await active(pool_id), await active(pool_id)];
    const insert = (lease: string, { subscription_id }: Held, until: string) =>
      fixture.query(
        `INSERT INTO held_slice (lease_id, subscription_id, gpu_id, is_slot, held_from, held_until)
         SELECT ${lease}, subscription_id, gpu_id, is_slot, clock_timestamp() - interval '20 days', ${until} FROM held_slice, generate_series(1, 10000) n
         WHERE subscription_id = $1`,
        [subscription_id],
      );
    await insert('lease_id', asked, `clock_timestamp() - interval '2 hours'`);
    await insert('-n', other, 'NULL');
    await fixture.query('ANALYZE held_slice');
    const path = { team_id: team.team_id, subscription_id: asked.subscription_id, metric_window: 'last_1h' } as const;
    const sent = await statementsOf(() => fixture.call(subscriptions.list, path, team.member));
    const reads = sent.filter(({ text }) => /\bFROM held_slice\b/.test(text));
    expect(reads).toHaveLength(1);
    for (const read of reads) expect(await mostRowsRead(fixture, read)).toBeLessThan(100);
  });
});
