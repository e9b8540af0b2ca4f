import pg from 'pg';

type Query = (...parameters: unknown[]) => unknown;
const deadlockDetected = '40P01';

/**
 * How many statements of this process PostgreSQL ended because of a deadlock while `work` was done. A transaction that
 * is repeated after one succeeds all the same: only this shows that locks were taken in different orders. One at a
 * time, and not within `statementsOf`.
 */
export async function deadlocksOf(work: () => Promise<unknown>): Promise<number> {
  let deadlocks = 0;
  const note = (error: unknown) => {
    if ((error as { code?: string } | null | undefined)?.code === deadlockDetected) deadlocks += 1;
  };
  const client = pg.Client.prototype as unknown as { query: Query };
  const { query } = client;
  client.query = function (this: pg.Client, ...parameters: unknown[]): unknown {
    const callback = parameters.at(-1);
    if (typeof callback === 'function') {
      const noting = (error: unknown, ...rest: unknown[]) => {
        note(error);
        (callback as Query)(error, ...rest);
      };
      return query.apply(this, [...parameters.slice(0, -1), noting]);
    }
    const result = query.apply(this, parameters);
    if (result instanceof Promise) result.catch(note);
    return result;
  };
  try {
    await work();
  } finally {
    client.query = query;
  }
  return deadlocks;
}
