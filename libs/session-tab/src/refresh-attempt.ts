import { browser } from './browser.js';
import { randomId, randomIdForm } from './random-id.js';

const attemptKey = 'atoll-refresh-attempt';

/**
 * The id of the refresh that this browser has under way: the one that a tab left behind which got no answer, or a new
 * one. The server answers a refresh again to the same id alone, so tabs share it until one of them has the answer.
 */
export function refreshAttempt(): string {
  const left = browser.localStorage.getItem(attemptKey);
  if (left !== null && randomIdForm.test(left)) return left;
  const id = randomId();
  browser.localStorage.setItem(attemptKey, id);
  return id;
}

/** Forgets the id, which was answered; one that another tab has begun since then stays. */
export function endRefreshAttempt(id: string): void {
  if (browser.localStorage.getItem(attemptKey) === id) browser.localStorage.removeItem(attemptKey);
}
