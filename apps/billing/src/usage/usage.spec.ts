import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  billingReports,
  gpuUsageTold,
  podUsageTold,
  usage,
  type UsageEvent,
  type UsageRecorded,
} from '@atoll/contracts/billing';
import { regionAdded } from '@atoll/contracts/gpuaas';
import { teamChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { deadlocksOf, inTransactionBeside, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { BillingFixture, errorOf, memberOf, type ToldTeam } from '../billing-fixture.js';

let fixture: BillingFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BillingFixture.start();
  team = await fixture.team('training');
});
afterAll(() => fixture.stop());

let sequence = 0;
function aFact(more: Partial<UsageEvent> = {}): UsageEvent {
  sequence += 1;
  return {
    source: 'meter',
    id: `fact ${sequence}`,
    time: '2026-10-01T00:00:00.000Z',
    resource_id: `vm:${sequence}`,
    kind: 'vm',
    sku: 'vm.small',
    quantity: '1',
    team_id: team.team_id,
    workspace_id: team.workspaces[0]!.id,
    ...more,
  };
}

const record = (...events: UsageEvent[]) => fixture.call(usage.record, { events });
const count = async () => (await fixture.query<{ count: string }>('SELECT count(*) FROM usage_fact'))[0]?.count;

/** What a batch was refused with; nothing of it was stored. */
async function refusal(...events: UsageEvent[]): Promise<[string, (string | undefined)[]]> {
  const before = await count();
  const { code, details } = await errorOf(record(...events));
  expect(await count()).toBe(before);
  return [code, (details.errors ?? []).map(({ path }) => path)];
}

describe('a batch of usage', () => {
  it('counts what is new and what was known', async () => {
    const facts = [aFact(), aFact()];
    expect(await record(...facts)).toEqual({ accepted: 2, duplicates: 0 });
    expect(await record(...facts, aFact(), facts[0]!)).toEqual({ accepted: 1, duplicates: 3 });
  });

  it('waits for another that has facts in common, in whatever order each has them: neither locks the other out', async () => {
    const common = () => aFact({ resource_id: 'vm:common' });
    const [known, facts] = [common(), [common(), common(), common()]];
    await record(known);
    await inTransactionBeside(fixture.get(DataSource), async (third) => {
      // It has the fact in the middle, and comes to nothing.
      await third.query(
        `INSERT INTO usage_fact (source, id, timeline_no, series_no, time_ms, sequence, quantity_nano)
         SELECT source, $1, timeline_no, series_no, time_ms, sequence, quantity_nano FROM usage_fact WHERE id = $2`,
        [facts[1]?.id, known.id],
      );
      let answers: UsageRecorded[] = [];
      const deadlocks = await deadlocksOf(async () => {
        const recorded = Promise.all([record(...facts), record(...facts.toReversed())]);
        await untilLockWaits(fixture, { text: 'INSERT INTO usage_fact', count: 2, unless: recorded });
        await third.rollbackTransaction();
        answers = await recorded;
      });
      expect(deadlocks).toEqual([]);
      expect(answers.map(({ accepted }) => accepted).toSorted()).toEqual([0, 3]);
    });
  });

  it('takes one content for another only where it differs: order of attributes and spelling of ids, times and numbers do not', async () => {
    const fact = aFact({ attributes: { pool_name: 'a', profile: 'b' }, region_id: '1', quantity: '2.5' });
    await record(fact);
    const again = {
      ...fact,
      attributes: { profile: 'b', pool_name: 'a' },
      quantity: '2.50',
      time: '2026-10-01T05:45:00+05:45',
      sequence: 0,
    };
    expect(await record(again, fact)).toEqual({ accepted: 0, duplicates: 2 });
  });

  it.each<[string, Partial<UsageEvent>]>([
    ['time', { time: '2026-10-01T00:00:00.001Z' }],
    ['sequence', { sequence: 1 }],
    ['quantity', { quantity: '1.000000001' }],
    ['resource', { resource_id: 'vm:other' }],
    ['name', { resource_name: 'other' }],
    ['kind', { kind: 'pod' }],
    ['SKU', { sku: 'vm.large' }],
    ['region', { region_id: '2' }],
    ['pool', { pool_id: '2' }],
    ['attributes', { attributes: { profile: 'c' } }],
  ])('refuses another %s under a known id, with the index of the fact', async (_name, change) => {
    const fact = aFact();
    await record(fact);
    expect(await refusal(aFact(), { ...fact, ...change })).toEqual(['conflict', ['events.1']]);
    expect(await refusal(aFact(), { ...fact, id: `${fact.id}!` }, { ...fact, ...change, id: `${fact.id}!` })).toEqual([
      'conflict',
      ['events.2'],
    ]);
  });

  it('says in words which fact it was that is known with other content', async () => {
    const fact = aFact();
    await record(fact);
    const { message } = await errorOf(record(aFact(), { ...fact, quantity: '2' }));
    expect(message).toContain(`events.1: the id ${fact.id} of the source meter`);
  });

  it('refuses a team that is none and a workspace of another, by the index of the fact', async () => {
    const other = await fixture.team();
    const foreign = aFact({ workspace_id: other.workspaces[0]!.id });
    const unknown = aFact({ team_id: newId() });
    // The second time as well: they are not taken for known ones.
    for (let times = 0; times < 2; times += 1)
      expect(await refusal(aFact(), foreign, unknown)).toEqual([
        'invalid_input',
        ['events.1.workspace_id', 'events.2.team_id'],
      ]);
  });

  it('refuses times more than five minutes ahead, and the names of the platform’s own sources', async () => {
    const now = jest.spyOn(Date, 'now').mockReturnValue(Date.now());
    const ahead = (ms: number) => new Date(Date.now() + ms).toISOString();
    expect(await refusal(aFact({ time: ahead(300_001) }), aFact({ source: 'atoll-gpuaas' }))).toEqual([
      'invalid_input',
      ['events.0.time', 'events.1.source'],
    ]);
    expect(await record(aFact({ time: ahead(300_000) }))).toEqual({ accepted: 1, duplicates: 0 });
    now.mockRestore();
  });

  it('is for the operator alone', async () => {
    const input = { events: [aFact()] };
    const refused = await errorOf(fixture.call(usage.record, input, memberOf(team.team_id)));
    expect(refused.code).toBe('forbidden');
  });

  it('is answered again under its idempotency key', async () => {
    const input = { events: [aFact()] };
    const key = { key: 'k', fingerprint: 'f' };
    expect(await fixture.call(usage.record, input, undefined, key)).toEqual({ accepted: 1, duplicates: 0 });
    expect(await fixture.call(usage.record, input, undefined, key)).toEqual({ accepted: 1, duplicates: 0 });
  });

  it('leaves nothing behind where it is refused: what it would have made is made when it comes again', async () => {
    const [known, added] = [aFact(), aFact({ region_id: '9' })];
    await record(known);
    expect(await refusal(added, { ...known, quantity: '7' })).toEqual(['conflict', ['events.1']]);
    expect(await fixture.query('SELECT FROM region WHERE region_id = 9')).toEqual([]);
    await record(added);
    const held = await fixture.query(
      'SELECT resource_id FROM open_segment JOIN timeline ON no = timeline_no WHERE resource_id = $1',
      [added.resource_id],
    );
    expect(held).toEqual([{ resource_id: added.resource_id }]);
  });

  it('uses up one number for each timeline and series that is new, whatever it comes with', async () => {
    const numbers = () =>
      fixture.query<{ timeline: number; series: number }>(
        'SELECT (SELECT max(no) FROM timeline) AS timeline, (SELECT max(no) FROM series) AS series',
      );
    const known = Array.from({ length: 20 }, () => aFact());
    await record(...known);
    const [before] = await numbers();
    for (let round = 0; round < 5; round++) await record(...known, aFact({ sku: `vm.new-${round}` }));
    const [after] = await numbers();
    expect([after!.timeline - before!.timeline, after!.series - before!.series]).toEqual([5, 5]);
  });
});

describe('what the platform’s own services tell', () => {
  it('is recorded once, also of a team that is not known yet, and billed when it is', async () => {
    const team_id = newId();
    const workspace = { id: newId(), name: 'default' };
    const bill = () =>
      fixture.call(billingReports.team, {
        team_id,
        start_date: '2026-10-01T00:00:00',
        end_date: '2026-10-02T00:00:00',
        interval: 'daily',
      });
    const { source: _source, ...fact } = aFact({ team_id, workspace_id: workspace.id });
    await fixture.tell(gpuUsageTold, { facts: [fact] });
    await fixture.tell(gpuUsageTold, { facts: [fact] });
    expect(await fixture.query('SELECT source FROM usage_fact WHERE id = $1', [fact.id])).toEqual([
      { source: 'atoll-gpuaas' },
    ]);
    expect((await errorOf(bill())).code).toBe('not_found');
    await fixture.tell(teamChanged, {
      team_id,
      revision: 1,
      name: 'Late',
      is_suspended: false,
      status: 'active',
      workspaces: [workspace],
    });
    expect((await bill()).unpriced).toEqual([
      { resource_id: fact.resource_id, kind: 'vm', sku: 'vm.small', unit_hours: 24 },
    ]);
    expect(await record({ ...fact, source: 'meter', id: `${fact.id}-2` })).toEqual({ accepted: 1, duplicates: 0 });
  });

  it('may be a fact of the future, since what was told by a clock ahead must not be lost', async () => {
    const { source: _source, ...fact } = aFact({ time: new Date(Date.now() + 3_600_000).toISOString() });
    await fixture.tell(podUsageTold, { facts: [fact] });
    expect(await fixture.query('SELECT source FROM usage_fact WHERE id = $1', [fact.id])).toEqual([
      { source: 'atoll-pods' },
    ]);
  });

  it('names regions, as facts do', async () => {
    await record(aFact({ region_id: '41' }));
    await fixture.tell(regionAdded, { region_id: '42', region_name: 'Pokhara' });
    await record(aFact({ region_id: '42' }));
    const regions = await fixture.query('SELECT region_id, name FROM region WHERE region_id > 40 ORDER BY region_id');
    expect(regions).toEqual([
      { region_id: '41', name: null },
      { region_id: '42', name: 'Pokhara' },
    ]);
  });
});
