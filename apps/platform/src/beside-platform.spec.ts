import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { AppError } from '@atoll/errors';
import { besidePlatform, NoSettings } from './beside-platform.js';

const { DATABASE_URL, ATOLL_DATA_DIR } = process.env;
beforeEach(() => {
  // Nobody connects to it.
  process.env.DATABASE_URL = 'postgres://nobody@127.0.0.1:1/nothing';
  process.env.ATOLL_DATA_DIR = 'no-such-folder';
});
afterEach(() => {
  process.exitCode = undefined;
  for (const [name, value] of Object.entries({ DATABASE_URL, ATOLL_DATA_DIR }))
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
});

it('a command that meets an outage says what it comes from', async () => {
  const said = jest.spyOn(console, 'error').mockImplementation(() => undefined);
  const cause = new Error('cannot execute INSERT in a read-only transaction');
  const outage = new AppError('unavailable', 'The database is unavailable.', {}, { cause });
  await besidePlatform(NoSettings, () => Promise.reject(outage));
  expect([said.mock.calls, process.exitCode]).toEqual([[[`The command failed: ${cause.message}`]], 1]);
});
