import { Transactions } from '@atoll/database';
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { LogStore } from './log-store.js';
import { LogsFixture } from './logs-fixture.js';
import { writePlatformLine } from './platform-lines.js';

let fixture: LogsFixture;
beforeAll(async () => {
  fixture = await LogsFixture.start();
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => fixture.stop());

it('a line of the platform whose transaction commits after that of a later line, while that one is stored, is stored too', async () => {
  const pod = await fixture.pod(fixture.team());
  await fixture.endRun(pod.podId, 1);
  const transactions = fixture.get(Transactions);
  let commit: () => void = () => undefined;
  const mayCommit = new Promise<void>((resolve) => (commit = resolve));
  let hasWritten: () => void = () => undefined;
  const written = new Promise<void>((resolve) => (hasWritten = resolve));
  const slow = transactions.run(async (manager) => {
    await writePlatformLine(manager, pod.podId, 'written first');
    hasWritten();
    await mayCommit;
  });
  await written;
  await transactions.run((manager) => writePlatformLine(manager, pod.podId, 'committed first'));
  const store = fixture.get(LogStore);
  const append = store.append.bind(store);
  jest.spyOn(store, 'append').mockImplementation(async (groups, save) => {
    if (groups.some(({ source }) => source.isPlatform)) {
      commit();
      await slow;
    }
    return append(groups, save);
  });
  await fixture.collector.collect();
  await fixture.collector.idle();
  expect(await fixture.messages(pod)).toEqual(['committed first']);
  await fixture.collector.collect();
  await fixture.collector.idle();
  expect(await fixture.messages(pod)).toEqual(['committed first', 'written first']);
  expect(await fixture.query('SELECT FROM platform_line')).toEqual([]);
});
