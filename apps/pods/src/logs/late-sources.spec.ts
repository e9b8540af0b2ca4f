import { Statements, Transactions } from '@atoll/database';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { afterAll, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { LogClaims, type Claimed } from './log-claims.js';
import type { ReadLines } from './log-progress.js';
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
const settledMs = async (of = claimed) =>
  Number((await settledNs(fixture.get(Statements), [of.source.scopeNo])) / 1_000_000n);
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

it('a source that becomes late is as far as its own reader was, however far others are', async () => {
  const startMs = Date.now() - 10_000;
  for (let others = 0; others < 3; others += 1) await new LogClaims(fixture.get(Statements)).beAlive();
  await saved(startMs);
  await saved(startMs + 1_000, late());
  expect(await source()).toEqual({ readTo: startMs - 1_000, isHeld: true });
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

it('a process that stood still says nothing for three seconds more, in which it hears of what was written', async () => {
  const startMs = Date.now() - 20_000;
  await saved(startMs);
  const [nowMs, clock] = [performance.now(), jest.spyOn(performance, 'now')];
  const savedAfter = async (afterMs: number) => {
    clock.mockReturnValue(nowMs + afterMs);
    await save(current, startMs + afterMs);
    return (await reader()) - startMs + 1_000;
  };
  expect(await savedAfter(10_000)).toBe(0);
  for (const afterMs of [11_500, 12_900]) expect(await savedAfter(afterMs)).toBe(0);
  expect(await savedAfter(13_100)).toBe(13_100);
  clock.mockRestore();
});

it('a line that was read counts for a late source, however long ago its reader was current', async () => {
  await saved(Date.now() - 30_000);
  await saved(Date.now(), late());
  const lastMs = Date.now() - 10_000;
  await fixture.query('UPDATE log_source SET last_ns = $2 WHERE no = $1', [claimed.source.no, `${lastMs}000000`]);
  // The line itself is settled, too.
  expect(await settledNs(fixture.get(Statements), [claimed.source.scopeNo])).toBe(BigInt(lastMs) * 1_000_000n + 1n);
});

it('what a replica read that is gone is waited for until others have had a minute to take over', async () => {
  const goneMs = Date.now() - 3_600_000;
  await saved(goneMs);
  const other = new LogClaims(fixture.get(Statements));
  await other.beAlive();
  await fixture.query('UPDATE log_reader SET alive_until = read_to, started_at = read_to WHERE id = $1', [
    claims.readerId,
  ]);
  expect(await settledMs()).toBe(goneMs - 3_000);
  await fixture.query(`UPDATE log_reader SET started_at = now() - interval '2 minutes' WHERE id = $1`, [
    other.readerId,
  ]);
  expect(await settledMs()).toBeGreaterThan(goneMs);
  expect((await other.claimRuns([])).map(({ podId }) => podId)).toEqual([pod.podId]);
  expect(await settledMs()).toBe(goneMs - 3_000);
  await fixture.query(`UPDATE log_source SET holds_until = now() - interval '1 minute'`);
  expect(await settledMs()).toBeGreaterThan(goneMs);
});

it('a replica of the release before, which says nothing of how far it is, is as far as it lived', async () => {
  await saved(Date.now());
  await fixture.query(
    `UPDATE log_reader SET read_to = NULL, started_at = NULL, alive_until = date_trunc('second', now()) + interval '5 seconds' WHERE id = $1`,
    [claims.readerId],
  );
  const [{ alive_until } = {}] = await fixture.query<{ alive_until: Date }>('SELECT alive_until FROM log_reader');
  const settled = (alive_until?.getTime() ?? 0) - 17_000;
  expect(await settledMs()).toBe(settled);
  const other = new LogClaims(fixture.get(Statements));
  await other.beAlive();
  await fixture.query('UPDATE log_source SET read_to = NULL, holds_until = NULL');
  await fixture.query(`UPDATE log_reader SET alive_until = alive_until - interval '1 hour' WHERE id = $1`, [
    claims.readerId,
  ]);
  await other.claimRuns([]);
  expect(await source()).toEqual({ readTo: settled + 2_000 - 3_600_000, isHeld: true });
});

it('a replica that reads nothing of a team holds up none who follow it', async () => {
  const behindMs = Date.now() - 30_000;
  await saved(behindMs);
  const other = new LogClaims(fixture.get(Statements));
  await other.beAlive();
  const ofOther = await fixture.pod(fixture.team());
  const [theirs] = (await other.claimRuns([])) as [Claimed];
  expect(theirs.podId).toBe(ofOther.podId);
  await fixture.query(`UPDATE log_source SET read_to = NULL, holds_until = NULL`);
  expect(await settledMs()).toBeLessThan(behindMs);
  expect(await settledMs(theirs)).toBeGreaterThan(behindMs);
});

it('where nothing is left to read, all is settled that was written three seconds ago', async () => {
  await fixture.query('DELETE FROM log_source');
  const [beforeMs, settled, afterMs] = [Date.now(), await settledMs(), Date.now()];
  expect(settled).toBeGreaterThanOrEqual(beforeMs - 3_000);
  expect(settled).toBeLessThanOrEqual(afterMs - 3_000);
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
  const another = await fixture.pod(pod.teamId);
  await claims.claimRuns([claimed.source.no]);
  expect([await isOver(), await source()]).toMatchObject([false, { isHeld: true }]);
  await fixture.query('UPDATE pod_run SET ended_at = now()');
  await fixture.query('INSERT INTO pod_run (pod_id, run, gpuaas_id) SELECT pod_id, run + 1, gpuaas_id FROM pod_run');
  expect([await isOver(), await source()]).toMatchObject([true, { isHeld: true }]);
  await fixture.query('UPDATE pod_run SET is_log_read = (run <> $1) WHERE pod_id = $2', [claimed.run, pod.podId]);
  // A crash between two statements would leave a source that no replica takes, and none forgets.
  expect(await allStatementsDuring(isOver)).toHaveLength(1);
  expect(await source()).toEqual({ readTo: null, isHeld: false });
  // The replica reads on what else it reads.
  const kept = 'SELECT pod_id FROM log_source WHERE reader_id = $1';
  expect(await fixture.query(kept, [claims.readerId])).toEqual([{ pod_id: another.podId }]);
});

it('a source is let go by the transaction that stores the last of it, whatever is left to read of other pods', async () => {
  const other = await fixture.pod(pod.teamId);
  const write = ({ podId }: WrittenPod) =>
    fixture.query(`INSERT INTO platform_line (pod_id, message) VALUES ($1, 'The pod stops.')`, [podId]);
  const save = (of: Claimed, more: Partial<ReadLines>) => {
    const read = { ...of, before: null, cursor: null, lines: [], notices: [], platformLineIds: [] };
    return fixture.get(Transactions).run((manager) => claims.save(manager, [{ ...read, isComplete: true, ...more }]));
  };
  const isRead = async ({ source: { no } }: Claimed) =>
    (await fixture.query('SELECT FROM log_source WHERE no = $1 AND reader_id = $2', [no, claims.readerId])).length > 0;
  await fixture.startRun(pod.podId, 2);
  await save(claimed, {});
  expect(await isRead(claimed)).toBe(true);
  await save(claimed, { run: 2 });
  expect(await isRead(claimed)).toBe(false);
  for (const one of [pod, pod, other]) await write(one);
  const platform = (await claims.claimPlatformLines([])).find(({ podId }) => podId === pod.podId)!;
  const [first = '', last = ''] = platform.written.map(({ id }) => id);
  await save(platform, { isComplete: false, platformLineIds: [first] });
  expect(await isRead(platform)).toBe(true);
  await save(platform, { isComplete: false, platformLineIds: [last] });
  expect(await isRead(platform)).toBe(false);
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
