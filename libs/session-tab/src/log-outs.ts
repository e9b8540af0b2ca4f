import { browser } from './browser.js';
import { randomId } from './random-id.js';

/**
 * Of `localStorage`: a JSON object of a stamp for each user who has logged out in this browser. Any other text is the
 * log-out of whoever was logged in: one of a tab without a session, or of an earlier release.
 */
const key = 'atoll-logged-out';

/** Whether an event of `localStorage` is about log-outs. */
export function isAboutLogOuts(changed: string | null | undefined): boolean {
  return changed === key;
}

/** The log-outs that there are, for `hasLoggedOut` to compare with. */
export function logOuts(): string | null {
  return browser.localStorage.getItem(key);
}

/** Writes down that the user has logged out; without one, that whoever is logged in has. */
export function noteLogOut(userId: string | undefined): void {
  const stamp = `${Date.now()} ${randomId()}`;
  const noted = userId === undefined ? stamp : JSON.stringify({ ...stampsIn(logOuts()), [userId]: stamp });
  browser.localStorage.setItem(key, noted);
}

/** Whether the user has logged out since `before`. */
export function hasLoggedOut(userId: string, before: string | null): boolean {
  return stampOf(userId, before) !== stampOf(userId, logOuts());
}

function stampOf(userId: string, noted: string | null): unknown {
  const stamps = stampsIn(noted);
  return stamps ? stamps[userId] : noted;
}

function stampsIn(noted: string | null): Record<string, unknown> | undefined {
  if (noted === null) return {};
  try {
    return JSON.parse(noted) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
