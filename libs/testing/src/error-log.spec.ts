import { describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { allowErrors, expectErrors, recordError, takeErrorFaults } from './error-log.js';

const logger = new Logger('Spec');

describe('the error log of a spec', () => {
  it('finds fault with a line that was not expected, and with an expected one that is missing', () => {
    expectErrors(/expected/);
    logger.error('a surprise');
    expect(takeErrorFaults()).toEqual([
      'Logged as error, and not expected: a surprise Spec',
      'Expected in the error log, and not there: /expected/',
    ]);
  });

  it('takes what was expected or allowed, and forgets it for the next spec', () => {
    expectErrors(/a bug/);
    allowErrors(/a crash/);
    logger.fatal('a bug');
    recordError(new Error('a crash'));
    expect(takeErrorFaults()).toEqual([]);
    logger.error('a bug');
    expect(takeErrorFaults()).toEqual(['Logged as error, and not expected: a bug Spec']);
  });

  it('takes a use of what is deprecated for an error', async () => {
    process.emitWarning('A spec causes this warning.', 'DeprecationWarning');
    await new Promise(setImmediate);
    expect(takeErrorFaults()).toEqual([
      'Logged as error, and not expected: DeprecationWarning: A spec causes this warning.',
    ]);
  });

  it('does not look at warnings', () => {
    logger.warn('careful');
    logger.log('fine');
    expect(takeErrorFaults()).toEqual([]);
  });
});
