import { browser } from './browser.js';
import { randomId } from './random-id.js';

/**
 * Of `localStorage`: a JSON object of a stamp for each user who has logged out in this browser, and one for the last
 * log-out of whoever was logged in, as of a tab without a session. Any other text is such a stamp of an earlier
 * release.
 */
const key = 'atoll-logged-out';
/** In the place of a user, for whoever is logged in. */
const everybody = '*';

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
  const stamps = { ...stampsIn(logOuts()), [userId ?? everybody]: `${Date.now()} ${randomId()}` };
  browser.localStorage.setItem(key, JSON.stringify(stamps));
}

/** Whether the user has logged out since `before`. */
export function hasLoggedOut(userId: string, before: string | null): boolean {
  const [then, now] = [stampsIn(before), stampsIn(logOuts())];
  return [userId, everybody].some((name) => then[name] !== now[name]);
}

function stampsIn(noted: string | null): Record<string, unknown> {
  if (noted === null) return {};
  try {
    return JSON.parse(noted) as Record<string, unknown>;
  } catch {
    return { [everybody]: noted };
  }
}
