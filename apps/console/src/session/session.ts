/** How this tab is logged in. An API key is kept in memory alone: it is gone when the tab is reloaded or closed. */
export type Session = { kind: 'none'; ended: 'never' | 'logout' | 'expired' } | { kind: 'key'; key: string };

type Listener = () => void;

let current: Session = { kind: 'none', ended: 'never' };
const listeners = new Set<Listener>();

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

export function logInWithKey(key: string): void {
  become({ kind: 'key', key });
}

export function logOut(): void {
  become({ kind: 'none', ended: 'logout' });
}

/** What was answered with 401: the session is over, once, however many calls are answered so. */
export function sessionExpired(): void {
  if (current.kind !== 'none') become({ kind: 'none', ended: 'expired' });
}

/** What authenticates a call; undefined while logged out. */
export function authorization(): string | undefined {
  return current.kind === 'key' ? `Bearer ${current.key}` : undefined;
}
