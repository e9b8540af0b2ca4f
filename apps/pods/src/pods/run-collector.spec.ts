import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { ClusterError, type ClusterDriver, type ObjectRef } from '@atoll/cluster';
import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { DataSource } from 'typeorm';
import type { Clusters } from '../cluster/clusters.js';
import { PodsFixture } from '../pods-fixture.js';
import type { PodsSettings } from '../pods-settings.js';
import { RunCollector } from './run-collector.js';

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
});
afterAll(() => fixture.stop());

/** Clusters by the number of their GPU service, with what each does when it is asked to remove a run. */
let removes: Record<string, (ref: ObjectRef, signal: AbortSignal) => Promise<void>>;
let collectors: RunCollector[];
beforeEach(async () => {
  removes = {};
  collectors = [];
  await fixture.query('TRUNCATE pod_run');
});
afterEach(async () => {
  jest.restoreAllMocks();
  await Promise.all(collectors.map((each) => each.beforeApplicationShutdown()));
});

const untilStopped = (_: ObjectRef, signal: AbortSignal) =>
  new Promise<void>((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(new Error('It took too long.'))),
  );

function collector(): RunCollector {
  const driver = (gpuaasId: string): ClusterDriver =>
    ({
      remove: (ref: ObjectRef, signal: AbortSignal) => removes[gpuaasId]?.(ref, signal) ?? Promise.resolve(),
      observePods: () => Promise.resolve([{ phase: 'absent' }]),
    }) as unknown as ClusterDriver;
  const clusters = { driverOf: (gpuaasId: string) => Promise.resolve(driver(gpuaasId)) } as unknown as Clusters;
  const made = new RunCollector(fixture.get(DataSource), clusters, { workers: {} } as PodsSettings);
  collectors.push(made);
  return made;
}

/** So many runs, each ended a second after the one before. */
async function ended(gpuaasId: string, count: number, { hours = 1, isLogRead = true } = {}): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  await fixture.query(
    `INSERT INTO pod_run (pod_id, run, gpuaas_id, ended_at, is_log_read)
     SELECT id, 1, $2, clock_timestamp() - make_interval(hours => $3) + place * interval '1 second', $4
     FROM unnest($1::uuid[]) WITH ORDINALITY ended (id, place)`,
    [ids, gpuaasId, hours, isLogRead],
  );
  return ids;
}

const left = async () =>
  (await fixture.query<{ pod_id: string }>('SELECT pod_id FROM pod_run')).map(({ pod_id }) => pod_id);
async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await delay(25);
}

describe('the removal of ended runs', () => {
  it('goes on beside a run that its cluster does not remove, and tries that one again later', async () => {
    const warned = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const [stuck = ''] = await ended('1', 30);
    removes['1'] = ({ id }) =>
      id === stuck ? Promise.reject(new ClusterError('invalid', 'It is held.')) : Promise.resolve();
    await collector().look('1');
    expect(await left()).toEqual([stuck]);
    expect(warned.mock.calls.flat()).toEqual([
      'Cannot remove 1 of 30 ended runs of GPU service 1; retrying: It is held.',
    ]);
    removes = {};
    await collector().look('1');
    expect(await left()).toEqual([stuck]);
    await fixture.query('UPDATE pod_run SET retry_at = clock_timestamp()');
    await collector().look('1');
    expect(await left()).toEqual([]);
  });

  it('tries each run once, however many replicas look at its cluster', async () => {
    const ids = await ended('1', 40);
    const asked: string[] = [];
    removes['1'] = ({ id }) => {
      asked.push(id);
      return new Promise((resolve) => setImmediate(resolve));
    };
    await Promise.all([collector(), collector(), collector()].map((each) => each.look('1')));
    expect(asked.toSorted()).toEqual(ids.toSorted());
    expect(await left()).toEqual([]);
  });

  it('goes on beside one whose removal hangs', async () => {
    const [hanging = ''] = await ended('1', 30);
    removes['1'] = (ref, signal) => (ref.id === hanging ? untilStopped(ref, signal) : Promise.resolve());
    const own = collector();
    const look = own.look('1');
    await until(async () => (await left()).length === 1);
    await own.beforeApplicationShutdown();
    await look;
    expect(await left()).toEqual([hanging]);
  });

  it('gives those that failed no place before others, however many they are', async () => {
    jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const stuck = await ended('1', 120, { hours: 2 });
    const [other = ''] = await ended('1', 1);
    removes['1'] = ({ id }) => (stuck.includes(id) ? Promise.reject(new Error('It is held.')) : Promise.resolve());
    const own = collector();
    await own.look('1');
    await own.look('1');
    expect(await left()).not.toContain(other);
  });

  it('of one cluster waits for no other cluster, though that one hangs with thousands', async () => {
    await ended('2', 3_000, { hours: 3 });
    const [run = ''] = await ended('1', 1);
    removes['2'] = untilStopped;
    collector().onApplicationBootstrap();
    await until(async () => !(await left()).includes(run));
  });

  it('takes no connections from requests', async () => {
    await ended('1', 100);
    const pool = (fixture.get(DataSource).driver as unknown as { master: EventEmitter }).master;
    let [taken, removed] = [0, 0];
    const removing = new AsyncLocalStorage<true>();
    // The service itself takes some meanwhile.
    const count = () => (taken += removing.getStore() ? 1 : 0);
    pool.on('acquire', count);
    removes['1'] = () => Promise.resolve(void (removed += 1));
    removing.run(true, () => collector().onApplicationBootstrap());
    await until(() => Promise.resolve(removed === 100));
    await until(async () => (await left()).length === 0);
    pool.off('acquire', count);
    expect(taken).toBe(0);
  });

  it('leaves a run whose log is not read for a day', async () => {
    const [young = ''] = await ended('1', 1, { hours: 23, isLogRead: false });
    await ended('1', 1, { hours: 25, isLogRead: false });
    await collector().look('1');
    expect(await left()).toEqual([young]);
  });

  it('reads what is due, and not those that wait for their day or their next try, however many those are', async () => {
    await ended('1', 5_000, { isLogRead: false });
    await ended('1', 5_000);
    await fixture.query(`UPDATE pod_run SET retry_at = clock_timestamp() + interval '1 hour' WHERE is_log_read`);
    const [other = ''] = await ended('2', 1);
    await fixture.query('VACUUM ANALYZE pod_run');
    const sent = await allStatementsDuring(async () => {
      const own = collector();
      own.onApplicationBootstrap();
      await until(async () => !(await left()).includes(other));
      await own.look('1');
      await own.beforeApplicationShutdown();
    });
    const looks = sent.filter(({ text }) => text.includes('ended_at'));
    expect(looks.length).toBeGreaterThanOrEqual(3);
    for (const look of looks) expect(await mostRowsRead(fixture, look)).toBeLessThan(100);
  });
});
