/** What setTimeout takes; a longer time would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** Calls back after `timeMs`, or after the 24 days that a timer can take. */
export function after(timeMs: number, callback: () => void): NodeJS.Timeout {
  return setTimeout(callback, Math.min(timeMs, maxTimerMs));
}

/**
 * The outcome of `work`, or `late` where it is not done within `patienceMs`. `work` goes on then, and what it throws is
 * ignored.
 */
export async function withPatience<T, Late>(work: Promise<T>, patienceMs: number, late: Late): Promise<T | Late> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<Late>((resolve) => (timer = after(patienceMs, () => resolve(late))));
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
