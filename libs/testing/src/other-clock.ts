/**
 * Runs `work` as on a machine whose clock is so many milliseconds ahead of that of the database, or behind it. Timers
 * take as long as ever.
 */
export async function onOtherClock<T>(offMs: number, work: () => Promise<T>): Promise<T> {
  const Real = globalThis.Date;
  const now = (): number => Real.now() + offMs;
  globalThis.Date = new Proxy(Real, {
    construct: (_, given: [] | [number]) => (given.length === 0 ? new Real(now()) : new Real(...given)),
    get: (_, name, receiver) => (name === 'now' ? now : (Reflect.get(Real, name, receiver) as unknown)),
  });
  try {
    return await work();
  } finally {
    globalThis.Date = Real;
  }
}
