/**
 * The outcome of `work`, or the signal's reason as an error as soon as the signal is aborted, which it may be already.
 * `work` goes on then, and what it throws is ignored.
 */
export async function untilAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  let fail = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    fail = () => reject(signal.reason as Error);
    if (signal.aborted) fail();
    signal.addEventListener('abort', fail, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', fail);
  }
}
