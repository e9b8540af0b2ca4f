import { Statements, Transactions } from '@atoll/database';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { LogClaims, type Claimed } from './log-claims.js';
import { LogsFixture, type WrittenPod } from './logs-fixture.js';
import { settledNs } from './settled.js';

let fixture: LogsFixture;
let claims: LogClaims;
let pod: WrittenPod;
let claimed: Claimed;
beforeAll(async () => {
  fixture = await LogsFixture.start();
});
afterAll(() => fixture.stop());
beforeEach(async () => {
  await fixture.query('DELETE FROM log_source');
  await fixture.query('DELETE FROM log_reader');
  await fixture.query('DELETE FROM pod_run');
  claims = new LogClaims(fixture.get(Statements));
  await claims.beAlive();
  pod = await fixture.pod(fixture.team());
  [claimed] = (await claims.claimRuns([])) as [Claimed];
});

/** A look of the replica at its only source; since when it is late. */
const save = async (lateSinceMs: number, nowMs = Date.now()) =>
  claims.late.save([{ no: claimed.source.no, lateSinceMs }], nowMs);
const current = Infinity;
const late = () => performance.now() - 60_000;
const reader = async () => {
  const [row] = await fixture.query<{ read_to: Date }>('SELECT read_to FROM log_reader WHERE id = $1', [
    claims.readerId,
  ]);
  return row?.read_to.getTime() ?? 0;
};
const source = async () => {
  const [row] = await fixture.query<{ read_to: Date | null; is_held: boolean | null }>(
    'SELECT read_to, holds_until > now() AS is_held FROM log_source WHERE no = $1',
    [claimed.source.no],
  );
  return { readTo: row?.read_to?.getTime() ?? null, isHeld: row?.is_held ?? false };
};
const settledMs = async () => Number((await settledNs(fixture.get(Statements), [claimed.source.scopeNo])) / 1_000_000n);
/** Saves until what it says is believed: a process that stood still is not, for a while. */
const saved = async (nowMs: number, lateSinceMs = current) => {
  do await save(lateSinceMs, nowMs);
  while ((await reader()) !== nowMs - 1_000);
};

it('a source that is claimed is late until its reader has caught up', async () => {
  expect(await source()).toMatchObject({ isHeld: true });
  await save(-Infinity);
  expect(await source()).toMatchObject({ isHeld: true });
  await save(current);
  expect(await source()).toEqual({ readTo: null, isHeld: false });
});

it('a source that becomes late is as far as all were before, and stays there until it has caught up', async () => {
  const startMs = Date.now() - 10_000;
  await saved(startMs);
  await saved(startMs + 1_000, late());
  expect(await source()).toEqual({ readTo: startMs - 1_000, isHeld: true });
  await saved(startMs + 2_000, late());
  expect(await source()).toEqual({ readTo: startMs - 1_000, isHeld: true });
  expect(await settledMs()).toBe(startMs - 3_000);
  await saved(startMs + 3_000);
  expect(await settledMs()).toBe(startMs);
});

it('what is on its way into the store for less than a second is not late', async () => {
  await save(current);
  await save(performance.now());
  expect(await source()).toEqual({ readTo: null, isHeld: false });
});

it('a late source whose row is locked, as by lines that are stored, is waited for by nobody, and passed by nobody', async () => {
  const startMs = Date.now() - 10_000;
  await saved(startMs);
  await fixture.get(Transactions).run(async (manager) => {
    await manager.query('SELECT FROM log_source WHERE no = $1 FOR UPDATE', [claimed.source.no]);
    await save(late(), startMs + 5_000);
    expect(await reader()).toBe(startMs - 1_000);
    expect(await settledMs()).toBe(startMs - 3_000);
  });
  await saved(startMs + 6_000, late());
  expect(await settledMs()).toBe(startMs - 3_000);
});

it('a source that another replica reads meanwhile keeps nobody from going on', async () => {
  const startMs = Date.now() - 10_000;
  await saved(startMs);
  await fixture.query('UPDATE log_source SET reader_id = gen_random_uuid() WHERE no = $1', [claimed.source.no]);
  await saved(startMs + 1_000, late());
  expect(await source()).toEqual({ readTo: null, isHeld: false });
});

it('a process that stood still says nothing of what was written meanwhile', async () => {
  const startMs = Date.now() - 10_000;
  await saved(startMs);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500);
  await save(current, startMs + 3_000);
  expect(await reader()).toBe(startMs - 1_000);
});

it('a line that was read counts for a late source, however long ago its reader was current', async () => {
  await saved(Date.now() - 30_000);
  await saved(Date.now(), late());
  const lastMs = Date.now() - 10_000;
  await fixture.query('UPDATE log_source SET last_ns = $2 WHERE no = $1', [claimed.source.no, `${lastMs}000000`]);
  expect(await settledMs()).toBe(lastMs);
});

it('what a replica read that is gone is waited for until others have had a minute to take over', async () => {
  const goneMs = Date.now() - 3_600_000;
  await saved(goneMs);
  const other = new LogClaims(fixture.get(Statements));
  await other.beAlive();
  await fixture.query('UPDATE log_reader SET alive_until = read_to WHERE id = $1', [claims.readerId]);
  expect(await settledMs()).toBe(goneMs - 3_000);
  await fixture.query(`UPDATE log_reader SET started_at = now() - interval '2 minutes' WHERE id = $1`, [
    other.readerId,
  ]);
  expect(await settledMs()).toBeGreaterThan(goneMs);
  expect((await other.claimRuns([])).map(({ podId }) => podId)).toEqual([pod.podId]);
  expect(await settledMs()).toBe(goneMs - 3_000);
  await fixture.query('UPDATE log_source SET holds_until = now()');
  expect(await settledMs()).toBeGreaterThan(goneMs);
});

it('a replica is remembered for as long as something of what it read is left', async () => {
  await fixture.query(`UPDATE log_reader SET alive_until = now() - interval '1 day' WHERE id = $1`, [claims.readerId]);
  const other = new LogClaims(fixture.get(Statements));
  await other.beAlive();
  expect(await reader()).toBeGreaterThan(0);
  await other.claimRuns([]);
  await other.beAlive();
  expect(await reader()).toBe(0);
});

it('a source of which nothing is left to read holds up nobody, by the statement that says so, and is kept while another run is left', async () => {
  const isOver = () => claims.isOver(claimed);
  expect([await isOver(), await source()]).toMatchObject([false, { isHeld: true }]);
  await fixture.query('UPDATE pod_run SET ended_at = now()');
  await fixture.query('INSERT INTO pod_run (pod_id, run, gpuaas_id) SELECT pod_id, run + 1, gpuaas_id FROM pod_run');
  expect([await isOver(), await source()]).toMatchObject([true, { isHeld: true }]);
  await fixture.query('UPDATE pod_run SET is_log_read = (run <> $1)', [claimed.run]);
  // A crash between two statements would leave a source that no replica takes, and none forgets.
  expect(await allStatementsDuring(isOver)).toHaveLength(1);
  expect(await source()).toEqual({ readTo: null, isHeld: false });
});

it('how far all is stored is found with few rows, however many pods a team has and had', async () => {
  await save(current);
  const other = new LogClaims(fixture.get(Statements));
  await other.beAlive();
  await fixture.query(
    `INSERT INTO log_source (pod_id, pod_name, is_platform, scope_no, reader_id, read_to, holds_until)
     SELECT gen_random_uuid(), 'pod', false, $1, CASE WHEN number % 3 = 0 THEN $2::uuid END,
       CASE WHEN number % 5 = 0 THEN now() - interval '1 hour' END, CASE WHEN number % 5 = 0 THEN now() - interval '1 minute' END
     FROM generate_series(1, 3000) number`,
    [claimed.source.scopeNo, other.readerId],
  );
  await fixture.query('ANALYZE log_source, log_reader');
  const [asked] = await allStatementsDuring(settledMs);
  expect(await mostRowsRead(fixture, asked!)).toBeLessThan(20);
});
