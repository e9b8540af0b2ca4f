/** What setTimeout takes; a longer time would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** Calls back after `timeMs`, or after the 24 days that a timer can take. */
export function after(timeMs: number, callback: () => void): NodeJS.Timeout {
  return setTimeout(callback, Math.min(timeMs, maxTimerMs));
}

interface Waited {
  isDone: boolean;
  readonly waiters: Set<() => void>;
}

/** Of work that somebody has waited for. One reaction serves all who do: a promise that stays open keeps its own. */
const known = new WeakMap<Promise<unknown>, Waited>();

function waitedFor(work: Promise<unknown>): Waited {
  const found = known.get(work);
  if (found) return found;
  const waited: Waited = { isDone: false, waiters: new Set() };
  const end = (): void => {
    waited.isDone = true;
    for (const wake of waited.waiters) wake();
  };
  work.then(end, end);
  known.set(work, waited);
  return waited;
}

/**
 * The outcome of `work`, or `late` where it is not done within `patienceMs`. `work` goes on then, and what it throws is
 * ignored. It may be waited for any number of times: a wait leaves nothing behind.
 */
export async function withPatience<T, Late>(work: Promise<T>, patienceMs: number, late: Late): Promise<T | Late> {
  const waited = waitedFor(work);
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = after(patienceMs, resolve);
  waited.waiters.add(resolve);
  try {
    if (!waited.isDone) await promise;
    return waited.isDone ? await work : late;
  } finally {
    clearTimeout(timer);
    waited.waiters.delete(resolve);
  }
}
