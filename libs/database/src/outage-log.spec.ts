import { expect, it, jest } from '@jest/globals';
import { AppError } from '@atoll/errors';
import { OutageLog } from './outage-log.js';

it('tells operators what an outage comes from, which callers are not told, once a minute', () => {
  const logger = { warn: jest.fn<(line: string) => void>(), error: jest.fn<(line: string) => void>() };
  const outages = new OutageLog(logger);
  const cause = new Error('could not extend file: No space left on device');
  const outage = new AppError('unavailable', 'The database is unavailable.', {}, { cause });
  for (let times = 0; times < 3; times += 1) outages.log('error', 'Cannot look; retrying', outage);
  expect([logger.warn.mock.calls, logger.error.mock.calls]).toEqual([
    [['Cannot look; retrying: could not extend file: No space left on device']],
    [],
  ]);
});
