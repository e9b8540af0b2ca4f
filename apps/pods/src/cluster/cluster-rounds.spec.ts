import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { PodsSettings } from '../pods-settings.js';
import { ClusterRounds } from './cluster-rounds.js';

const everyMs = 1_000;

/** A round lasts until the spec ends it, and so does each visit. */
class SlowRounds extends ClusterRounds {
  readonly asked: ((gpuaasIds: readonly string[]) => void)[] = [];
  readonly visits: { gpuaasId: string; end: () => void }[] = [];

  constructor() {
    super('nothing', { workers: { isIdle: false } } as PodsSettings, {} as DataSource);
  }

  protected override get everyMs(): number {
    return everyMs;
  }

  protected override due(): Promise<readonly string[]> {
    return new Promise((resolve) => this.asked.push(resolve));
  }

  override look(gpuaasId: string): Promise<void> {
    return new Promise((resolve) => this.visits.push({ gpuaasId, end: resolve }));
  }
}

let slow: SlowRounds;
beforeEach(() => {
  jest.useFakeTimers();
  slow = new SlowRounds();
  slow.onApplicationBootstrap();
});
afterEach(() => {
  jest.useRealTimers();
});
const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);

it('rounds of clusters do not pile up behind one that is slow', async () => {
  await pass(60 * everyMs);
  expect(slow.asked).toHaveLength(1);
  slow.asked[0]?.([]);
  await pass(everyMs - 1);
  expect(slow.asked).toHaveLength(1);
  await pass(1);
  expect(slow.asked).toHaveLength(2);
});

it('a cluster that hangs is visited once and keeps no other from its visits', async () => {
  for (let round = 0; round < 3; round += 1) {
    slow.asked[round]?.(['hangs', 'answers']);
    await pass(0);
    slow.visits.findLast(({ gpuaasId }) => gpuaasId === 'answers')?.end();
    await pass(everyMs);
  }
  expect(slow.visits.map(({ gpuaasId }) => gpuaasId)).toEqual(['hangs', 'answers', 'answers', 'answers']);
});

it('a service that stops waits for the round and the visits under way, and begins no more', async () => {
  slow.asked[0]?.(['1']);
  await pass(everyMs);
  let isOver = false;
  const over = slow.beforeApplicationShutdown().then(() => (isOver = true));
  slow.asked[1]?.(['2']);
  await pass(10 * everyMs);
  expect([isOver, slow.asked.length]).toEqual([false, 2]);
  slow.visits[0]?.end();
  await over;
  expect(slow.visits).toHaveLength(1);
});

/** One row a page. */
class PagedRounds extends ClusterRounds {
  readonly looked: string[] = [];

  constructor(
    private readonly ids: readonly string[],
    private readonly failing: string,
  ) {
    super('nothing', { workers: { isIdle: false } } as PodsSettings, {} as DataSource);
  }

  protected override readonly everyMs = everyMs;

  protected override due(): Promise<readonly string[]> {
    return Promise.resolve(['1']);
  }

  override look(gpuaasId: string): Promise<void> {
    this.looked.push('round');
    return this.inPages(
      gpuaasId,
      '0',
      (after) =>
        Promise.resolve(this.ids.filter((id) => id > after).flatMap((id, place) => (place === 0 ? [{ id }] : []))),
      (rows) => {
        const ids = rows.map(({ id }) => id);
        this.looked.push(...ids);
        return ids.includes(this.failing) ? Promise.reject(new Error('It fails.')) : Promise.resolve();
      },
    );
  }
}

it.each([
  [
    ['1', '2', '3'],
    ['round', '1', '2', 'round', '3', '1', '2', 'round', '3', '1', '2'],
  ],
  [['2'], ['round', '2', 'round', '2', 'round', '2']],
])('a page of %j that fails each time keeps no other from its look', async (ids, looked) => {
  jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const paged = new PagedRounds(ids, '2');
  paged.onApplicationBootstrap();
  await pass(2 * everyMs);
  await paged.beforeApplicationShutdown();
  expect(paged.looked).toEqual(looked);
  jest.restoreAllMocks();
});
