import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterDriver, ObjectRef } from '@atoll/cluster';
import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { DataSource } from 'typeorm';
import type { Clusters } from '../cluster/clusters.js';
import { PodsFixture } from '../pods-fixture.js';
import type { PodsSettings } from '../pods-settings.js';
import { LateEnds } from '../usage/late-ends.js';
import { GivenUpEnds } from './given-up-ends.js';
import type { PodStarts } from './pod-start.js';

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
});
afterAll(() => fixture.stop());

/** What a cluster does when it is asked to stop a pod. */
let stops: (ref: ObjectRef, signal: AbortSignal) => Promise<void>;
let stopped: string[];
let workloads: string[];
let replicas: GivenUpEnds[];
beforeEach(async () => {
  stops = () => Promise.resolve();
  [stopped, workloads, replicas] = [[], [], []];
  await fixture.query('TRUNCATE given_up_end');
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
});
afterEach(async () => {
  jest.restoreAllMocks();
  await Promise.all(replicas.map((each) => each.beforeApplicationShutdown()));
});

const hang = (_: ObjectRef, signal: AbortSignal) =>
  new Promise<void>((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(new Error('It took too long.'))),
  );

function replica(): GivenUpEnds {
  const driver = {
    stopPod: (ref: ObjectRef, _graceMs: number, signal: AbortSignal) => {
      stopped.push(ref.id);
      return stops(ref, signal);
    },
    observePods: () => Promise.resolve([{ phase: 'ended' }]),
  } as unknown as ClusterDriver;
  const clusters = { driverOf: () => Promise.resolve(driver) } as unknown as Clusters;
  const starts = {
    endWorkload: ({ podId }: { podId: string }) => Promise.resolve(void workloads.push(podId)),
  } as unknown as PodStarts;
  const settings = { workers: {} } as PodsSettings;
  const made = new GivenUpEnds(fixture.get(DataSource), clusters, starts, fixture.get(LateEnds), settings);
  replicas.push(made);
  return made;
}

/**
 * So many pods of one team, or of some that take turns, whose ends were given up, each a millisecond after the one
 * before.
 */
async function givenUp(count: number, { run = 1, minutesAgo = 0, teams = 1 } = {}): Promise<string[]> {
  const ids = Array.from({ length: count }, () => randomUUID());
  await fixture.query(
    `WITH given AS (SELECT id, place FROM unnest($1::uuid[]) WITH ORDINALITY given (id, place)), pods AS (
       INSERT INTO pod (pod_id, pod_name, name, team_id, workspace_id, subscription_id, gpuaas_id, region_id, profile, image, vgpus, command, ports,
         volumes, restart, start, run, state, entered_at)
       SELECT id, 'pod-' || id, 'pod', ($2::uuid[])[1 + place % cardinality($2)], id, 1, 1, 1, '1g.10gb', 'busybox', 1, '[]', '[]', '[]', 'always', 1, 1, 'deleted', now() FROM given)
     INSERT INTO given_up_end (kind, id, run, start, gpuaas_id, team_id, try_at)
     SELECT 'pod', id, $3, 1, 1, ($2::uuid[])[1 + place % cardinality($2)], clock_timestamp() - make_interval(mins => $4 + 1) + place * interval '1 millisecond' FROM given`,
    [ids, Array.from({ length: teams }, () => randomUUID()), run, minutesAgo],
  );
  return ids;
}
const outstanding = async () =>
  (await fixture.query<{ id: string }>('SELECT id FROM given_up_end')).map(({ id }) => id);
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(5);
}

describe('ends that were given up', () => {
  it('do not wait for one that hangs', async () => {
    const [hanging = ''] = await givenUp(30);
    // Longer than any patience.
    let isWaiting = true;
    stops = async ({ id }) => {
      while (id === hanging && isWaiting) await delay(5);
    };
    const look = replica().look('1');
    await until(() => workloads.length === 29);
    expect(workloads).not.toContain(hanging);
    isWaiting = false;
    await look;
    expect(await outstanding()).toEqual([]);
  });

  it('do not wait for those of another team, however many of them were given up before and hang', async () => {
    const many = await givenUp(1_000, { minutesAgo: 60 });
    const [own = ''] = await givenUp(1);
    stops = (ref, signal) => (many.includes(ref.id) ? hang(ref, signal) : Promise.resolve());
    void replica().look('1');
    await until(() => workloads.includes(own));
    expect(stopped.length).toBeLessThanOrEqual(5);
  });

  it('that need the cluster no more do not wait for those that do, of the same team', async () => {
    const team = await givenUp(100, { minutesAgo: 60 });
    const [own = ''] = team.slice(-1);
    await fixture.query('UPDATE given_up_end SET run = 0 WHERE id = $1', [own]);
    stops = hang;
    void replica().look('1');
    await until(() => workloads.includes(own));
  });

  it('are a few at once on one cluster, and each is tried by one replica', async () => {
    const ids = await givenUp(60);
    const all = new Set<() => void>();
    let most = 0;
    stops = () =>
      new Promise((resolve) => {
        all.add(resolve);
        most = Math.max(most, all.size);
      });
    const looks = Promise.all([replica().look('1'), replica().look('1')]);
    while (stopped.length < 60) {
      await until(() => all.size > 0);
      for (const end of all) end();
      all.clear();
    }
    for (const end of all) end();
    await looks;
    expect(stopped.toSorted()).toEqual(ids.toSorted());
    expect(most).toBeLessThanOrEqual(8);
    expect(await outstanding()).toEqual([]);
  });

  it('go on with the next teams where a look at their cluster takes too long', async () => {
    const ids = await givenUp(32, { teams: 32 });
    let isLate = false;
    const { now } = performance;
    jest.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + (isLate ? 60_000 : 0));
    stops = () => {
      isLate = true;
      return Promise.reject(new Error('It is held.'));
    };
    const own = replica();
    for (const tried of [16, 32]) {
      await own.look('1');
      expect(stopped).toHaveLength(tried);
      isLate = false;
      await fixture.query('UPDATE given_up_end SET try_at = clock_timestamp()');
    }
    expect(stopped.toSorted()).toEqual(ids.toSorted());
  });

  it('are tried too where a replica of the release before, which names no team, gave them up', async () => {
    const [pod = ''] = await givenUp(1);
    await fixture.query('DELETE FROM given_up_end');
    await fixture.query(`INSERT INTO given_up_end (kind, id, run, start, gpuaas_id) VALUES ('pod', $1, 1, 1, 1)`, [
      pod,
    ]);
    await replica().look('1');
    expect(workloads).toEqual([pod]);
  });

  it.each([1, 100, 4_000])('are claimed by reading a few of 4,000, of %i teams', async (teams) => {
    await givenUp(4_000, { teams });
    await fixture.query('ANALYZE given_up_end');
    stops = hang;
    const sent = await allStatementsDuring(async () => {
      void replica().look('1');
      await until(() => stopped.length > 0);
    });
    const reads = sent.filter(({ text }) => /^\s*(SELECT|WITH)/.test(text) && text.includes('given_up_end'));
    expect(reads).not.toEqual([]);
    for (const read of reads) expect(await mostRowsRead(fixture, read)).toBeLessThan(1_000);
  });

  it('that are not due yet are not read by each look for the clusters to visit', async () => {
    await givenUp(4_000, { minutesAgo: -60 });
    const [late = ''] = await givenUp(1);
    await fixture.query('UPDATE given_up_end SET gpuaas_id = 7 WHERE id = $1', [late]);
    await fixture.query('ANALYZE given_up_end');
    const own = replica();
    const sent = await allStatementsDuring(async () => expect(await own['due']()).toEqual(['7']));
    for (const read of sent) expect(await mostRowsRead(fixture, read)).toBeLessThan(100);
  });

  it('are all tried, but for those of which another replica has just locked some of the first', async () => {
    const ids = await givenUp(60);
    const other = fixture.get(DataSource).createQueryRunner();
    await other.connect();
    await other.startTransaction();
    await other.query('SELECT FROM given_up_end WHERE id = ANY ($1::uuid[]) FOR UPDATE', [ids.slice(0, 5)]);
    await replica().look('1');
    await other.rollbackTransaction();
    await other.release();
    expect((await outstanding()).toSorted()).toEqual(ids.slice(0, 5).toSorted());
  });

  it('are tried again later where they failed, and hold no place from others meanwhile', async () => {
    const failing = await givenUp(40, { minutesAgo: 60 });
    const others = await givenUp(2);
    stops = ({ id }) => (failing.includes(id) ? Promise.reject(new Error('It is held.')) : Promise.resolve());
    const own = replica();
    await own.look('1');
    await own.look('1');
    expect([stopped.length, workloads.toSorted()]).toEqual([42, others.toSorted()]);
    await fixture.query('UPDATE given_up_end SET try_at = clock_timestamp()');
    stops = () => Promise.resolve();
    await own.look('1');
    expect(await outstanding()).toEqual([]);
  });
});
