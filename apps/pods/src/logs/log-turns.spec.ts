import { memberOf } from '@atoll/testing';
import { contextOf } from '@atoll/testing';
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import type { UserCaller } from '@atoll/contracts';
import { LogStore } from './log-store.js';
import { LogsFixture } from './logs-fixture.js';
import { LogsService } from './log.service.js';

let fixture: LogsFixture;
let caller: Partial<UserCaller>;
beforeAll(async () => {
  fixture = await LogsFixture.start();
  const teamIds = Array.from({ length: 9 }, () => fixture.team());
  for (const teamId of teamIds) await fixture.endRun((await fixture.pod(teamId)).podId, 1);
  await fixture.collector.collect();
  await fixture.collector.idle();
  caller = { ...memberOf(teamIds[0]!), scope: 'user', teams: teamIds.map((teamId) => ({ teamId, role: 'member' })) };
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => fixture.stop());

it('a search through many teams takes no longer than one through few', async () => {
  const read = jest.spyOn(fixture.get(LogStore), 'read');
  await fixture.logs({ search: 'x' }, caller);
  expect(read.mock.calls.map(([{ searchMs }]) => searchMs)).toEqual(Array.from({ length: 9 }, () => 1_000 / 3));
});

it('an empty search is a read of all lines', async () => {
  const read = jest.spyOn(fixture.get(LogStore), 'read');
  await fixture.logs({ search: '' }, caller);
  expect(read.mock.calls.map(([{ search }]) => search)).toEqual(Array.from({ length: 9 }, () => null));
});

it('teams whose turn comes when nobody waits any more are not read', async () => {
  const context = { ...contextOf(caller) };
  const read = jest.spyOn(fixture.get(LogStore), 'read').mockImplementation(() => {
    context.deadlineAtMs = 0;
    return Promise.resolve({ lines: [], readTo: null });
  });
  await expect(fixture.get(LogsService).read({ search: 'x' }, context)).rejects.toMatchObject({
    code: 'deadline_exceeded',
  });
  expect(read).toHaveBeenCalledTimes(4);
});
