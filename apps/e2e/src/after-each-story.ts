import { afterEach } from '@jest/globals';
import { setTimeout as delay } from 'node:timers/promises';
import { hasTestFailed, loggedOf } from '@atoll/testing';
import { takeAnswers } from './client.js';

/** Processes write their lines a tenth of a second late at most. */
const untilWrittenMs = 1_000;

afterEach(async () => {
  const answers = takeAnswers();
  if (!hasTestFailed() || answers.length === 0) return;
  await delay(untilWrittenMs);
  throw new Error(`What the platform logged of requests of this story:\n${loggedOf(answers)}`);
});
