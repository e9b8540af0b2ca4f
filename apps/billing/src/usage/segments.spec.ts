import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  array,
  assert,
  asyncProperty,
  constantFrom,
  integer,
  nat,
  record,
  shuffledSubarray,
  type Arbitrary,
} from 'fast-check';
import { usage, type UsageEvent } from '@atoll/contracts/billing';
import { runs } from '@atoll/testing';
import { BillingFixture, type ToldTeam } from '../billing-fixture.js';

let fixture: BillingFixture;
beforeAll(async () => {
  fixture = await BillingFixture.start();
});
afterAll(() => fixture.stop());

/**
 * A fact of a few timelines at few instants, so that they meet: at one time, around the ends of months, in two
 * workspaces and pools.
 */
interface Draft {
  resource: number;
  sku: string;
  pool: string | undefined;
  time: number;
  sequence: number;
  source: string;
  quantity: string;
  workspace: number;
}

const instants = [
  '2026-01-31T23:59:59.999Z',
  '2026-02-01T00:00:00Z',
  '2026-02-01T00:00:00.001Z',
  '2026-03-15T12:00:00Z',
  '2026-06-30T00:00:00Z',
];
const draft: Arbitrary<Draft> = record({
  resource: nat(1),
  sku: constantFrom('vm.large', 'vm.small'),
  pool: constantFrom(undefined, '1', '2'),
  time: nat(instants.length - 1),
  sequence: nat(1),
  // A language, UTF-16 and the bytes each order these in a way of their own.
  source: constantFrom('a', 'B', 'é', '\uffee', '\u{1f600}'),
  quantity: constantFrom('0', '1', '2.5', '0.000000001'),
  workspace: nat(1),
});

/** Facts, and the order in which they are told. */
const toldFacts = array(draft, { minLength: 1, maxLength: 12 }).chain((drafts) =>
  record({ drafts: constantFrom(drafts), order: shuffledSubarray([...drafts.keys()], { minLength: drafts.length }) }),
);

function eventsOf(drafts: readonly Draft[], { team_id, workspaces }: ToldTeam): UsageEvent[] {
  return drafts.map(({ resource, sku, pool, time, sequence, source, quantity, workspace }, index) => ({
    source,
    id: `${team_id} ${index}`,
    time: instants[time]!,
    sequence,
    resource_id: `vm:${resource}`,
    kind: 'vm',
    sku,
    quantity,
    team_id,
    workspace_id: workspaces[workspace]!.id,
    ...(pool && { pool_id: pool }),
  }));
}

interface Row {
  resource_id: string;
  sku: string;
  workspace_id: string;
  pool_id: string | null;
  start: number;
  end: number | null;
  quantity_nano: string;
}

async function segmentsOf(teamId: string): Promise<Row[]> {
  const rows = await fixture.query<Omit<Row, 'start' | 'end'> & { start_ms: string; end_ms: string | null }>(
    `SELECT resource_id, timeline.sku, workspace_id, pool_id, start_ms, end_ms, quantity_nano FROM (
       SELECT timeline_no, start_ms, end_ms, quantity_nano, team_no, series_no FROM segment
       UNION ALL SELECT timeline_no, start_ms, NULL, quantity_nano, team_no, series_no FROM open_segment
     ) AS segment JOIN timeline ON timeline.no = timeline_no JOIN series ON series.no = series_no AND series.sku = timeline.sku
     WHERE segment.team_no = (SELECT no FROM team WHERE id = $1) ORDER BY resource_id, timeline.sku, start_ms`,
    [teamId],
  );
  return rows.map(({ start_ms, end_ms, ...row }) => ({
    ...row,
    start: Number(start_ms),
    end: end_ms === null ? null : Number(end_ms),
  }));
}

/** What the facts come to, told plainly. */
function expectedSegments(events: readonly UsageEvent[]): Row[] {
  const bytes = (text: string) => Buffer.from(text);
  const held = (one: UsageEvent, other: UsageEvent) =>
    Date.parse(one.time) - Date.parse(other.time) ||
    (one.sequence ?? 0) - (other.sequence ?? 0) ||
    Buffer.compare(bytes(one.source), bytes(other.source)) ||
    Buffer.compare(bytes(one.id), bytes(other.id));
  const timelineOf = ({ resource_id, sku }: UsageEvent) => `${resource_id} ${sku}`;
  return [...new Set(events.map(timelineOf))].sort().flatMap((timeline) => {
    const facts = events.filter((event) => timelineOf(event) === timeline).sort(held);
    return facts.flatMap((fact, index) => {
      const next = facts[index + 1];
      const start = Date.parse(fact.time);
      const end = next ? Date.parse(next.time) : null;
      if (start === end || Number(fact.quantity) === 0) return [];
      const { resource_id, sku, workspace_id, pool_id = null } = fact;
      const quantity_nano = String(Math.round(Number(fact.quantity) * 1e9));
      return cutAtMonths(start, end).map(([from, to]) => ({
        resource_id,
        sku,
        workspace_id,
        pool_id,
        start: from,
        end: to,
        quantity_nano,
      }));
    });
  });
}

function cutAtMonths(start: number, end: number | null): [number, number | null][] {
  if (end === null) return [[start, null]];
  const from = new Date(start);
  const monthEnd = Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 1, 1);
  return end <= monthEnd ? [[start, end]] : [[start, monthEnd], ...cutAtMonths(monthEnd, end)];
}

function batchesOf<T>(values: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(values.length / size) }, (_, index) =>
    values.slice(index * size, (index + 1) * size),
  );
}

describe('segments', () => {
  it('are what the set of facts comes to, whatever the order, the batches and the repetitions they are told in', async () => {
    await assert(
      asyncProperty(toldFacts, integer({ min: 1, max: 5 }), async ({ drafts, order }, batchSize) => {
        const team = await fixture.team('training');
        const events = eventsOf(drafts, team);
        const permuted = order.map((index) => events[index]!);
        for (const batch of batchesOf([...permuted, ...events], batchSize))
          await fixture.call(usage.record, { events: batch });
        expect(await segmentsOf(team.team_id)).toEqual(expectedSegments(events));
      }),
      runs(60),
    );
  });

  it('are the same when batches of one timeline are told at once', async () => {
    await assert(
      asyncProperty(array(draft, { minLength: 4, maxLength: 16 }), async (drafts) => {
        const team = await fixture.team('training');
        const events = eventsOf(drafts, team);
        const answers = await Promise.all(
          [...batchesOf(events, 3), ...batchesOf(events.toReversed(), 4)].map((batch) =>
            fixture.call(usage.record, { events: batch }),
          ),
        );
        expect(answers.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(events.length);
        expect(await segmentsOf(team.team_id)).toEqual(expectedSegments(events));
      }),
      runs(25),
    );
  });

  it('of what runs for two years are cut into its months when it ends, and not before', async () => {
    const vm = await aVirtualMachine();
    await vm.holds(['2024-01-10T00:00:00Z', '1']);
    expect(await segmentsOf(vm.teamId)).toHaveLength(1);
    await vm.holds(['2026-01-10T00:00:00Z', '0']);
    expect(await segmentsOf(vm.teamId)).toHaveLength(25);
  });

  it('are made again only up to the neighbours of a new fact, however long the history is', async () => {
    const vm = await aVirtualMachine();
    const hour = (number: number) => new Date(Date.UTC(2026, 0, 1, number)).toISOString();
    await vm.holds(...Array.from({ length: 1000 }, (_, number): Step => [hour(number), String(1 + (number % 2))]));
    const history = await rowVersionsOf(vm.teamId);
    expect(history.size).toBe(999);

    await vm.holds([hour(1000), '3']);
    const extended = await rowVersionsOf(vm.teamId);
    expect([keptOf(history, extended), extended.size]).toEqual([999, 1000]);

    await vm.holds([hour(500).replace(':00:', ':30:'), '3']);
    const corrected = await rowVersionsOf(vm.teamId);
    expect([keptOf(extended, corrected), corrected.size]).toEqual([999, 1001]);
  });
});

/** From when on, and how much. */
type Step = readonly [time: string, quantity: string];

/** One timeline of a team of its own. */
async function aVirtualMachine() {
  const { team_id, workspaces } = await fixture.team();
  const one = { resource_id: 'vm:1', kind: 'vm', sku: 'vm.small', team_id, workspace_id: workspaces[0]!.id } as const;
  const holds = (...steps: readonly Step[]) => {
    const events = steps.map(([time, quantity]): UsageEvent => ({ ...one, source: team_id, id: time, time, quantity }));
    return fixture.call(usage.record, { events });
  };
  return { teamId: team_id, holds };
}

/** Of the segments that have ended: where each row lies, and the transaction that wrote it. */
async function rowVersionsOf(teamId: string): Promise<Set<string>> {
  const rows = await fixture.query<{ version: string }>(
    `SELECT concat(ctid, xmin) AS version FROM segment WHERE team_no = (SELECT no FROM team WHERE id = $1)`,
    [teamId],
  );
  return new Set(rows.map(({ version }) => version));
}

function keptOf(before: ReadonlySet<string>, after: ReadonlySet<string>): number {
  return [...before].filter((version) => after.has(version)).length;
}
