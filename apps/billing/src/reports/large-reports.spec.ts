import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { billingReports } from '@atoll/contracts/billing';
import { Rpc, type JsonText } from '@atoll/rpc';
import { contextOf, errorOf, memberOf, timeoutFactor, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { BillingFixture } from '../billing-fixture.js';
import { itemsPerSlice, Turns } from '@atoll/waiting';
import { BilledTeam } from './report-fixture.js';
import { ReportQueue } from './report-queue.js';

let billing: BillingFixture;
let team: BilledTeam;
/** What each slice of work was, of all reports since this was emptied. */
const slices: number[] = [];
/** Items at most by which a slice is longer: a list that is sorted in one go, a bucket of many SKUs. */
const mostBeyond = itemsPerSlice;

beforeAll(async () => {
  billing = await BillingFixture.start({ reportsAtOnce: 1, reportsPerTeam: 1 });
  const turns = billing.get(Turns);
  const next = turns.next.bind(turns);
  jest.spyOn(turns, 'next').mockImplementation((items) => {
    slices.push(items);
    return next(items);
  });
  team = await BilledTeam.of(billing);
});
afterAll(() => billing.stop());

const skus = 8;
const year = { start_date: '2024-01-01T00:00:00', end_date: '2025-01-01T00:00:00' };

async function json(operation: 'team' | 'pools' | 'storage', interval: 'hourly' | 'monthly'): Promise<JsonText> {
  const query = { ...year, interval, team_id: team.id };
  const context = { ...contextOf(memberOf(team.id)), deadlineAtMs: Date.now() + 60_000 * timeoutFactor };
  slices.length = 0;
  if (operation === 'team') return billing.get(Rpc).callForJson(billingReports.team, query, context);
  return billing.get(Rpc).callForJson(billingReports[operation], { ...query, region_id: 'all' }, context);
}

function expectSlices(items: number): void {
  expect(Math.max(...slices)).toBeLessThanOrEqual(itemsPerSlice + mostBeyond);
  // Whatever is done is counted, so that many slices mean much time for others.
  expect(slices.reduce((sum, one) => sum + one, 0)).toBeGreaterThanOrEqual(items);
}

describe('a report of megabytes', () => {
  it('by hour is made in slices, and is never one text', async () => {
    for (let n = 0; n < skus; n += 1) {
      await team.price(`vm-${n}`, `1.${n}`, '2023-01-01');
      // Each hour has another quantity for a part of it.
      const steps = Array.from(
        { length: 900 },
        (_, step) =>
          [new Date(Date.UTC(2024, 0, 1) + step * 35_000_000).toISOString().slice(0, 19), (step % 7) + 1] as const,
      );
      await team.holds(`vm-${n}`, steps);
    }
    const parts = await json('team', 'hourly');
    const cells = skus * 366 * 24;
    // Each is rated, rounded and written.
    expectSlices(3 * cells);
    expect(parts).toBeInstanceOf(Array);
    const bytes = (parts as readonly Uint8Array[]).map(({ length }) => length);
    expect(Math.max(...bytes)).toBeLessThanOrEqual(256 * 1024);
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(5_000_000);
  });

  it('by pool or volume is made in slices, with work for each resource that does not grow with their number', async () => {
    const count = 3_000;
    const facts = (kind: string, pool: string) => `
      WITH team AS (SELECT no FROM team WHERE id = '${team.id}'), known AS (
        INSERT INTO series (team_no, workspace_id, kind, sku, region_id, pool_id)
        SELECT DISTINCT no, '${team.workspace()}'::uuid, '${kind}', '${kind}', 1, ${pool} FROM team, generate_series(1, ${count}) n RETURNING no, team_no, pool_id
      ), held AS (
        INSERT INTO timeline (team_no, resource_id, sku) SELECT no, '${kind}:' || n, '${kind}' FROM team, generate_series(1, ${count}) n RETURNING *
      )
      INSERT INTO segment (timeline_no, start_ms, end_ms, quantity_nano, team_no, series_no)
      SELECT held.no, ${Date.UTC(2024, 4, 1)}, ${Date.UTC(2024, 5, 1)}, 1000000000, held.team_no, known.no FROM held JOIN known
        ON ${pool === 'n' ? `pool_id = substring(resource_id FROM '[0-9]+$')::bigint` : 'true'}`;
    await billing.query(facts('gpuaas_pool', 'n'));
    await billing.query(facts('shared_storage', 'NULL::bigint'));
    await json('pools', 'monthly');
    expectSlices(12 * count);
    const ofPools = slices.length;
    await json('storage', 'monthly');
    expectSlices(12 * count);
    // So much for each: the bill was quadratic once.
    expect(ofPools * itemsPerSlice).toBeLessThan(1_000 * count);
    expect(slices.length * itemsPerSlice).toBeLessThan(1_000 * count);
  });
});

describe('reports beyond the bounds', () => {
  it('say what to narrow where PostgreSQL gives up a statement after its time, and not that the same may be asked again', async () => {
    const other = await BilledTeam.of(billing);
    await other.price('vm-a', '1', '2023-01-01');
    await other.holds('vm-a', [['2024-01-01T00:00:00', 1]]);
    const locking = billing.get(DataSource).createQueryRunner();
    await locking.startTransaction();
    await locking.query('LOCK TABLE segment IN ACCESS EXCLUSIVE MODE');
    const refused = errorOf(other.report({ from: '2024-01-01', to: '2024-01-02' }));
    // What PostgreSQL does itself after the timeout.
    const [pid] = await untilLockWaits(billing);
    await billing.query('SELECT pg_cancel_backend($1)', [pid]);
    const { code, message, details } = await refused;
    await locking.rollbackTransaction();
    await locking.release();
    expect([code, details]).toEqual(['deadline_exceeded', {}]);
    expect(message).toBe(
      'There is too much usage to read in time. Ask for a shorter range, or for a single workspace.',
    );
  });

  it('are refused with 429 where the team’s own are in the way, and with 503 where others’ are; nobody else’s permission counts', async () => {
    const other = await BilledTeam.of(billing);
    let end = (): void => undefined;
    const running = billing
      .get(ReportQueue)
      .run(team.id, contextOf(memberOf(team.id)), () => new Promise<void>((resolve) => (end = resolve)));
    const ask = (of: BilledTeam, caller = memberOf(of.id)) =>
      errorOf(
        billing.ask(
          billingReports.team,
          { ...year, interval: 'monthly', team_id: of.id },
          { ...contextOf(caller), deadlineAtMs: Date.now() + 2_000 * timeoutFactor },
        ),
      );
    const refused = await Promise.all([ask(team), ask(other), ask(team, memberOf(other.id))]);
    expect(refused.map(({ code }) => code)).toEqual(['too_many_requests', 'unavailable', 'not_found']);
    for (const { details } of refused.slice(0, 2)) {
      expect(details.retryAfterSeconds).toBeGreaterThanOrEqual(1);
      expect(details.retryAfterSeconds).toBeLessThanOrEqual(timeoutFactor);
    }
    end();
    await running;
    expect((await other.report({ from: '2024-01-01', to: '2024-01-02' })).total_cost).toBe('0');
  });
});
