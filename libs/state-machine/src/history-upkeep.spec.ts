import { Logger } from '@nestjs/common';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { DataSource } from 'typeorm';
import { Harbour } from './berth-fixture.js';
import { HistoryUpkeep } from './history-upkeep.js';
import { MachineWorkers } from './machine-workers.js';

let harbour: Harbour;
beforeAll(async () => {
  harbour = await Harbour.open();
});
beforeEach(() => harbour.clear());
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});
afterAll(() => harbour.close());

async function write(count: number, days: number): Promise<void> {
  await harbour.dataSource.query(
    `INSERT INTO machine_history (machine, instance, to_state, actor, at)
     SELECT 'berth', $1::integer::text, 'free', 'user:harbour-master', clock_timestamp() - make_interval(days => $1::integer) FROM generate_series(1, $2::integer)`,
    [days, count],
  );
}

async function kept(): Promise<Record<string, number>> {
  const rows = await harbour.dataSource.query<{ days: string; count: number }[]>(
    'SELECT instance AS days, count(*)::integer AS count FROM machine_history GROUP BY instance',
  );
  return Object.fromEntries(rows.map(({ days, count }) => [days, count]));
}

describe('the history of machines', () => {
  it('is kept for as long as it is said, and removed after that in batches', async () => {
    await write(2_500, 31);
    await write(10, 29);
    const upkeep = new HistoryUpkeep(harbour.dataSource, 30);
    const more: boolean[] = [];
    do more.push(await upkeep.removeSome());
    while (more.at(-1));
    expect([more, await kept()]).toEqual([[true, true, false], { 29: 10 }]);
  });

  it('is removed by several replicas at once, none of which waits for another', async () => {
    await write(2_000, 31);
    const held = await harbour.transactions.run(async (manager) => {
      await manager.query('SELECT FROM machine_history ORDER BY id LIMIT 500 FOR UPDATE');
      await new HistoryUpkeep(harbour.dataSource, 30).removeSome();
      return kept();
    });
    expect(held).toEqual({ 31: 1_000 });
  });

  it('is removed by time, batch after batch, and again where a look failed', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] });
    const warned = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const query = jest.fn<() => Promise<unknown>>();
    query.mockRejectedValueOnce(new Error('It is away.'));
    for (const count of [1_000, 1_000, 3])
      query.mockResolvedValueOnce([Array.from({ length: count }, () => ({})), count]);
    query.mockResolvedValue([[], 0]);
    const upkeep = new HistoryUpkeep({ query } as unknown as DataSource, 30);
    upkeep.onApplicationBootstrap();
    await jest.advanceTimersByTimeAsync(600_000);
    expect(warned.mock.calls.flat()).toEqual(['Cannot remove old transitions; retrying: It is away.']);
    await jest.advanceTimersByTimeAsync(600_000 + 2 * 100);
    expect(query).toHaveBeenCalledTimes(4);
    await jest.advanceTimersByTimeAsync(600_000);
    expect(query).toHaveBeenCalledTimes(5);
    await upkeep.beforeApplicationShutdown();
    await jest.advanceTimersByTimeAsync(6_000_000);
    expect(query).toHaveBeenCalledTimes(5);
  });

  it('is kept up by the workers of a service that says for how long', async () => {
    await write(1, 31);
    const workers = new MachineWorkers([], harbour.dataSource, harbour.transactions, {
      service: 'harbour',
      historyDays: 30,
    });
    await workers.history?.removeSome();
    expect(await kept()).toEqual({});
    expect(
      new MachineWorkers([], harbour.dataSource, harbour.transactions, { service: 'harbour' }).history,
    ).toBeUndefined();
  });
});
