/** What setTimeout takes; a longer time would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

/** Calls back after `timeMs`, or after the 24 days that a timer can take. */
export function after(timeMs: number, callback: () => void): NodeJS.Timeout {
  return setTimeout(callback, Math.min(timeMs, maxTimerMs));
}

/**
 * Waits for `work` for at most `timeMs`; false if it was not done by then. Throws any error of `work` within that time.
 */
export async function inTime(work: Promise<unknown>, timeMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = after(timeMs, () => resolve(false))));
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
