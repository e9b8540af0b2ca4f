import { runInNewContext } from 'node:vm';
import { timeoutFactor } from './timeout-factor.js';

/**
 * What `action` returns. Throws where it has not returned in time: Jest's own timeout cannot end what keeps the event
 * loop, such as a regular expression whose cost grows with the square of a text.
 */
export function mustEnd<T>(action: () => T): T {
  return runInNewContext('action()', { action }, { timeout: 30_000 * timeoutFactor }) as T;
}
