import { setTimeout as delay } from 'node:timers/promises';
import { ClusterError } from '@atoll/cluster';
import { aDayThatLasts, memberOf, onOtherClock } from '@atoll/testing';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { array, assert, asyncProperty, boolean, integer, record } from 'fast-check';
import { LogClaims } from './log-claims.js';
import { writePlatformLine } from './platform-lines.js';
import { LogStore } from './log-store.js';
import { LogVolume } from './log-volume.js';
import { LogsFixture, type WrittenPod } from './logs-fixture.js';
import { Transactions } from '@atoll/database';
import { runs } from '@atoll/testing';

const numbered = (count: number, from = 0) => Array.from({ length: count }, (_, at) => `line ${from + at}`);

describe('the collector of logs', () => {
  let fixture: LogsFixture;
  beforeAll(async () => {
    fixture = await LogsFixture.start({ logLinesPerSecond: 20, logKibPerSecond: 64, logTeamMibPerDay: 1 });
  });
  afterAll(() => fixture.stop());

  async function until(isSo: () => Promise<boolean>): Promise<void> {
    while (!(await isSo())) await delay(5);
  }

  /** Its sources of which something is left to read, as far as is known. */
  const readOf = ({ podId }: WrittenPod) =>
    fixture.query('SELECT FROM log_source WHERE pod_id = $1 AND num_nonnulls(reader_id, read_to, holds_until) > 0', [
      podId,
    ]);

  it('stores every line of a run in its order, though an engine tells whole seconds, and says when it has read all', async () => {
    const pod = await fixture.pod(fixture.team());
    fixture.write(pod.podId, numbered(7));
    await fixture.collector.collect();
    fixture.write(pod.podId, numbered(4, 7));
    await until(async () => (await fixture.messages(pod)).length === 11);
    expect(await fixture.isRead(pod.podId, 1)).toBe(false);
    await fixture.endRun(pod.podId, 1);
    await fixture.collector.idle();
    expect(await fixture.messages(pod)).toEqual(numbered(11));
    expect(await fixture.isRead(pod.podId, 1)).toBe(true);
    expect(await readOf(pod)).toEqual([]);
  });

  it('a replica whose clock is a month behind stores lines as they were written', async () => {
    const pod = await fixture.pod(fixture.team());
    const at = new Date();
    fixture.write(pod.podId, ['as written'], { at });
    await fixture.endRun(pod.podId, 1);
    await onOtherClock(-30 * 86_400_000, async () => {
      await fixture.collector.collect();
      await fixture.collector.idle();
    });
    const { data } = await fixture.logs({ pod_name: pod.podName }, memberOf(pod.teamId));
    expect(data.map(({ message, timestamp }) => [message, timestamp.slice(0, 19)])).toEqual([
      ['as written', at.toISOString().slice(0, 19)],
    ]);
  });

  it('reads the runs of a pod one after the other', async () => {
    const pod = await fixture.pod(fixture.team());
    await fixture.startRun(pod.podId, 2);
    fixture.write(pod.podId, ['second run'], { run: 2 });
    fixture.write(pod.podId, ['first run']);
    await fixture.endRun(pod.podId, 2);
    await fixture.collector.collect();
    await until(async () => (await fixture.messages(pod)).length === 1);
    await fixture.endRun(pod.podId, 1);
    await fixture.collector.idle();
    await fixture.collector.collect();
    await fixture.collector.idle();
    expect(await fixture.messages(pod)).toEqual(['first run', 'second run']);
  });

  it('loses and doubles no line, however often the process that reads dies and others read beside it', async () => {
    const steps = array(
      record({ lines: integer({ min: 0, max: 4 }), dies: boolean(), perBatch: integer({ min: 1, max: 3 }) }),
      {
        maxLength: 6,
      },
    );
    await assert(
      asyncProperty(steps, async (drawn) => {
        const pod = await fixture.pod(fixture.team());
        let written = 0;
        let reader = fixture.replica();
        for (const { lines, dies, perBatch } of drawn) {
          fixture.engines.perBatch = perBatch;
          fixture.write(pod.podId, numbered(lines, written));
          written += lines;
          await reader.collect();
          if (!dies) continue;
          // Not a clean end: its claim runs out, and it goes on reading as if nothing were.
          await fixture.query(`UPDATE log_reader SET alive_until = now() - interval '1 second'`);
          reader = fixture.replica();
          await reader.collect();
        }
        await fixture.endRun(pod.podId, 1);
        await reader.collect();
        await until(() => fixture.isRead(pod.podId, 1));
        expect(await fixture.messages(pod)).toEqual(numbered(written));
      }),
      runs(10),
    );
    fixture.engines.perBatch = 2;
  });

  it('leaves to a living replica what it reads, and takes over what a dead one read', async () => {
    const pod = await fixture.pod(fixture.team());
    const [one, other] = [fixture.replica(), fixture.replica()];
    fixture.write(pod.podId, ['one']);
    await one.collect();
    await until(async () => (await fixture.messages(pod)).length === 1);
    const readerOf = async () =>
      (
        await fixture.query<{ reader_id: string }>(
          `SELECT reader_id FROM log_source WHERE pod_id = $1 AND NOT is_platform`,
          [pod.podId],
        )
      )[0]?.reader_id;
    const first = await readerOf();
    const livesUntil = (until: string) =>
      fixture.query('UPDATE log_reader SET alive_until = $2 WHERE id = $1', [first, until]);
    await livesUntil('infinity');
    await other.collect();
    expect(await readerOf()).toBe(first);
    await livesUntil('-infinity');
    await other.collect();
    expect(await readerOf()).not.toBe(first);
    await fixture.endRun(pod.podId, 1);
    await Promise.all([one.idle(), other.idle()]);
    expect(await fixture.messages(pod)).toEqual(['one']);
  });

  it('tries again where a cluster is away, and goes on where it was', async () => {
    const pod = await fixture.pod(fixture.team());
    fixture.engines.faults.push(new ClusterError('unreachable', 'The cluster does not answer.'));
    fixture.write(pod.podId, numbered(3));
    await fixture.endRun(pod.podId, 1);
    await fixture.collector.collect();
    await fixture.collector.idle();
    expect(await fixture.messages(pod)).toEqual(numbered(3));
  });

  it('waits for a container that is not there yet, and is done with one that is gone', async () => {
    const pod = await fixture.pod(fixture.team());
    await fixture.collector.collect();
    await delay(20);
    expect(await fixture.isRead(pod.podId, 1)).toBe(false);
    await fixture.query('UPDATE pod_run SET ended_at = now() WHERE pod_id = $1', [pod.podId]);
    await until(() => fixture.isRead(pod.podId, 1));
    await until(async () => (await readOf(pod)).length === 0);
  });

  it('cuts a line over 16 KiB within no character and marks it, and replaces what no text may have', async () => {
    const pod = await fixture.pod(fixture.team());
    fixture.write(pod.podId, ['ž'.repeat(10_000), 'a\0b']);
    fixture.write(pod.podId, ['cut by the engine'], { isCut: true });
    await fixture.endRun(pod.podId, 1);
    await fixture.collector.collect();
    await fixture.collector.idle();
    const mark = ' … [cut: a line has at most 16 KiB]';
    expect(await fixture.messages(pod)).toEqual(['ž'.repeat(8192) + mark, 'a\ufffdb', `cut by the engine${mark}`]);
  });

  it('drops what a pod writes beyond its rate and says so in its log, while another pod loses nothing', async () => {
    const teamId = fixture.team();
    const [loud, quiet] = [await fixture.pod(teamId), await fixture.pod(teamId)];
    fixture.engines.perBatch = 100;
    const at = new Date(Date.now() - 60_000);
    fixture.write(loud.podId, numbered(500), { at });
    fixture.write(loud.podId, ['after a pause'], { at: new Date(at.getTime() + 30_000) });
    fixture.write(quiet.podId, numbered(100), { at });
    await fixture.endRun(loud.podId, 1);
    await fixture.endRun(quiet.podId, 1);
    await fixture.collector.collect();
    await fixture.collector.idle();
    await fixture.collector.collect();
    await fixture.collector.idle();
    fixture.engines.perBatch = 2;
    const lines = await fixture.messages(loud);
    expect(lines.slice(0, 201)).toEqual([...numbered(200), 'after a pause']);
    const notices = lines.slice(201);
    const dropped = notices.map((notice) =>
      Number(/^(\d+) lines? w\w+ dropped: a pod may write 20 lines and 64 KiB a second\.$/.exec(notice)?.[1]),
    );
    expect(dropped.reduce((sum, count) => sum + count, 0)).toBe(300);
    expect(await fixture.messages(quiet)).toEqual(numbered(100));
  });

  it('counts lines when they were written: what piled up while nobody read is not dropped', async () => {
    const pod = await fixture.pod(fixture.team());
    const startMs = Date.now() - 600_000;
    for (let second = 0; second < 60; second += 1)
      fixture.write(pod.podId, numbered(20, 20 * second), { at: new Date(startMs + second * 1000) });
    fixture.engines.perBatch = 15;
    await fixture.endRun(pod.podId, 1);
    await fixture.collector.collect();
    await fixture.collector.idle();
    fixture.engines.perBatch = 2;
    expect(await fixture.messages(pod, { limit: 1000 })).toEqual(numbered(1000));
  });

  it('drops what a team writes beyond its share of a day, and says so, until the next', async () => {
    await aDayThatLasts();
    const teamId = fixture.team();
    const pod = await fixture.pod(teamId);
    const other = await fixture.pod(fixture.team());
    const startMs = Date.now() - 600_000;
    for (let second = 0; second < 70; second += 1) {
      fixture.write(pod.podId, ['x'.repeat(16_000)], { at: new Date(startMs + second * 1000) });
    }
    await fixture.collector.collect();
    await until(async () => (await fixture.messages(pod)).length === 70);
    await fixture.get(LogVolume).flush();
    fixture.write(pod.podId, ['too much']);
    fixture.write(other.podId, ['another team']);
    await fixture.endRun(pod.podId, 1);
    await fixture.endRun(other.podId, 1);
    await fixture.collector.collect();
    await fixture.collector.idle();
    await fixture.collector.collect();
    await fixture.collector.idle();
    expect((await fixture.messages(pod)).slice(70)).toEqual([
      'Lines are dropped until midnight UTC: the pods of a team may write 1 MiB a day.',
    ]);
    expect(await fixture.messages(other)).toEqual(['another team']);
    const volume = fixture.get(LogVolume);
    await volume.flush();
    expect(volume.isUsedUp(teamId)).toBe(true);
    await fixture.query('UPDATE log_volume SET day = day - 1 WHERE team_id = $1', [teamId]);
    await volume.flush();
    expect(volume.isUsedUp(teamId)).toBe(false);
  });

  it('stores what the platform writes about a pod, once, as lines of stream platform', async () => {
    const pod = await fixture.pod(fixture.team());
    await fixture.get(Transactions).run(async (manager) => {
      await writePlatformLine(manager, pod.podId, 'The pod stops in 10 minutes.');
      await writePlatformLine(manager, pod.podId, 'The pod stops in 10 minutes.');
    });
    await Promise.all([fixture.collector.collect(), fixture.replica().collect()]);
    await until(async () => (await fixture.messages(pod)).length === 2);
    const { data } = await fixture.logs({ pod_name: pod.podName }, memberOf(pod.teamId));
    const line = {
      stream: 'platform',
      container: 'main',
      pod_name: pod.podName,
      message: 'The pod stops in 10 minutes.',
    };
    expect(data).toEqual([expect.objectContaining(line), expect.objectContaining(line)]);
    expect(await fixture.query('SELECT FROM platform_line')).toEqual([]);
    expect(
      await fixture.query('SELECT FROM log_source WHERE pod_id = $1 AND is_platform AND reader_id IS NOT NULL', [
        pod.podId,
      ]),
    ).toEqual([]);
  });

  it('stores what other pods write while the store takes nothing of one team, and looks for new ones', async () => {
    const [refused, other] = [await fixture.pod(fixture.team()), await fixture.pod(fixture.team())];
    const store = fixture.get(LogStore);
    const append = store.append.bind(store);
    let isRefusing = true;
    jest.spyOn(store, 'append').mockImplementation(async (groups, save) => {
      const failing = groups.filter(({ source }) => isRefusing && source.teamId === refused.teamId);
      if (failing.length === groups.length) throw new Error('It is over its limit.');
      await append(
        groups.filter((group) => !failing.includes(group)),
        save,
      );
      return new Map(failing.map(({ source }) => [source.no, new Error('It is over its limit.')]));
    });
    const say = (pod: WrittenPod) =>
      fixture.get(Transactions).run((manager) => writePlatformLine(manager, pod.podId, 'The pod stops.'));
    for (const pod of [refused, other]) {
      await say(pod);
      fixture.write(pod.podId, ['x']);
    }
    const clock = jest.spyOn(performance, 'now').mockReturnValue(performance.now());
    const claims = jest.spyOn(fixture.get(LogClaims), 'claimPlatformLines');
    await fixture.collector.collect();
    await until(async () => (await fixture.messages(other)).length === 2);
    const late = await fixture.pod(other.teamId);
    fixture.write(late.podId, ['late']);
    await fixture.collector.collect();
    await until(async () => (await fixture.messages(late)).length === 1);
    expect(await fixture.messages(refused)).toEqual([]);
    // What was not stored takes no place from others for five seconds.
    await fixture.collector.collect();
    expect(await claims.mock.results.at(-1)?.value).toEqual([]);
    isRefusing = false;
    clock.mockReturnValue(performance.now() + 5_000);
    await until(async () => {
      await fixture.collector.collect();
      return (await fixture.messages(refused)).length === 2;
    });
    jest.restoreAllMocks();
  });

  it('does all else of a round where a part of it fails, and says so', async () => {
    const pod = await fixture.pod(fixture.team());
    fixture.write(pod.podId, ['x']);
    const claims = fixture.get(LogClaims);
    jest.spyOn(claims, 'claimPlatformLines').mockRejectedValueOnce(new Error('It is away.'));
    jest.spyOn(fixture.get(LogVolume), 'flush').mockRejectedValueOnce(new Error('It is away too.'));
    const maintained = jest.spyOn(fixture.get(LogStore), 'maintain');
    const collector = fixture.replica(fixture.get(LogVolume), claims);
    await expect(collector.collect()).rejects.toThrow('It is away.');
    expect(maintained).toHaveBeenCalledTimes(1);
    jest.restoreAllMocks();
  });
});
