import { SessionTab, type LogInOutcome, type TabState } from '@atoll/session-tab';
import { isMasked } from '../format/masked.js';

/**
 * How this tab is logged in. Nothing of it is in any storage: an API key is gone when the tab is reloaded; a session
 * goes on by its cookie, which no script can read.
 */
export type Session =
  | { kind: 'none'; ended: 'never' | 'logout' | 'again' | 'expired' }
  | { kind: 'key'; key: string }
  | { kind: 'session' };

type Listener = () => void;

let current: Session = { kind: 'none', ended: 'never' };
const listeners = new Set<Listener>();
/** Why this tab logs out, if it does. */
let leaving: 'logout' | 'again' = 'logout';

/** The browser's session in this tab; reports each change once, whether made here or in another tab. */
const tab = new SessionTab({ onChange: followTab });

function followTab(state: TabState): void {
  if (state.kind === 'in') become({ kind: 'session' });
  else if (current.kind === 'session')
    become({ kind: 'none', ended: state.reason === 'logged_out' ? leaving : 'expired' });
}

export function currentSession(): Session {
  return current;
}

export function onSessionChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function become(next: Session): void {
  current = next;
  for (const listener of listeners) listener();
}

/** Resumes the session of this browser, if it has one. Throws `RefreshFailed` if that cannot be determined yet. */
export function resumeSession(): Promise<void> {
  return tab.start();
}

/** The call that replaces the key of this tab, while it is under way; it is never rejected. */
let replacing: Promise<unknown> | undefined;

/**
 * Issues a key in place of the one by which this tab is logged in, if it is: the tab goes on with the new one. The old
 * key may end before the answer comes, so what is to be read meanwhile waits for it. Throws what `issue` throws.
 */
export async function replaceKey<Issued extends { api_key: string | null }>(
  issue: () => Promise<Issued>,
): Promise<Issued> {
  if (current.kind !== 'key') return issue();
  const issuing = issue().then((issued) => {
    const { api_key: key } = issued;
    // A repeat of an answer that was lost has no key to go on with.
    if (current.kind === 'key' && key !== null && !isMasked(key)) logInWithKey(key);
    return issued;
  });
  replacing = issuing.catch(() => undefined).finally(() => (replacing = undefined));
  return issuing;
}

export function logInWithKey(key: string): void {
  become({ kind: 'key', key });
}

export function logInWithPassword(email: string, password: string): Promise<LogInOutcome> {
  return tab.logIn(email, password);
}

export function logInWithCode(ticket: string, code: string): Promise<LogInOutcome> {
  return tab.logInWithCode(ticket, code);
}

export function logInWithPasskey(): Promise<LogInOutcome> {
  return tab.logInWithPasskey();
}

/** Adds a passkey of this device to the user of the session. Throws `NoSession`. */
export function addPasskey(name: string): Promise<Response> {
  return tab.addPasskey(name);
}

/**
 * This tab is out after some seconds at most: `again`, to log in anew and go on with the same page. Throws where the
 * session in this browser may go on, since the platform did not confirm its end.
 */
export async function logOut(reason: 'logout' | 'again' = 'logout'): Promise<void> {
  if (current.kind !== 'session') return become({ kind: 'none', ended: reason });
  leaving = reason;
  await tab.logOut().finally(() => (leaving = 'logout'));
}

/** A call to the platform as whoever is logged in. Of a session, the tab refreshes its token and sees its end. */
export async function fetchAsCaller(request: Request): Promise<Response> {
  if (request.headers.has('authorization') || current.kind === 'none') return fetch(request);
  if (current.kind === 'key') return fetchWithKey(request, current.key);
  const { pathname, search } = new URL(request.url);
  const body = request.method === 'GET' ? undefined : await request.text();
  const init = { method: request.method, headers: request.headers, ...(body && { body }) };
  return tab.fetch(pathname.replace(/^\/api/, '') + search, init);
}

/**
 * A key that is answered 401 is worth nothing any more: the tab is out, once, however many calls are answered so. Where
 * the tab has another key meanwhile, what was to be read is read by that one.
 */
async function fetchWithKey(request: Request, key: string): Promise<Response> {
  request.headers.set('authorization', `Bearer ${key}`);
  const response = await fetch(request);
  if (response.status !== 401) return response;
  const isRead = request.method === 'GET';
  if (isRead) await replacing;
  if (current.kind !== 'key') return response;
  if (current.key !== key) return isRead ? fetchWithKey(request, current.key) : response;
  become({ kind: 'none', ended: 'expired' });
  return response;
}
