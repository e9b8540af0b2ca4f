import pg from 'pg';

type Query = (...parameters: unknown[]) => unknown;
type NumberedClient = pg.Client & { processID?: number | null };

const deadlockDetected = '40P01';

/**
 * The statements of this process that PostgreSQL ended because of a deadlock while `work` was done: for each, what
 * PostgreSQL says of it, and the statements of the transactions that it names, of which the last one waits. A
 * transaction that is repeated after a deadlock succeeds all the same: only this shows that locks were taken in
 * different orders. One at a time, and not within `statementsOf`.
 */
export async function deadlocksOf(work: () => Promise<unknown>): Promise<string[]> {
  const deadlocks: string[] = [];
  const asked = new Map<NumberedClient, { isInTransaction: boolean; statements: string[] }>();
  const client = pg.Client.prototype as unknown as { query: Query };
  const { query } = client;
  const ask = (by: NumberedClient, what: unknown, values: unknown) => {
    const text = typeof what === 'string' ? what : ((what as { text?: string } | null | undefined)?.text ?? '');
    const begins = /^\s*(START TRANSACTION|BEGIN)/i.test(text);
    const ends = /^\s*(COMMIT|ROLLBACK\s*$)/i.test(text);
    const { isInTransaction = false, statements = [] } = asked.get(by) ?? {};
    const statement = `${text.replaceAll(/\s+/g, ' ')} ${Array.isArray(values) ? JSON.stringify(values) : ''}`;
    asked.set(by, {
      isInTransaction: (isInTransaction || begins) && !ends,
      statements: isInTransaction ? [...statements, statement] : [statement],
    });
  };
  const note = (error: unknown) => {
    const { code, detail = '' } = (error ?? {}) as { code?: string; detail?: string };
    if (code !== deadlockDetected) return;
    const involved = [...asked].filter(([{ processID }]) => detail.includes(`Process ${processID} waits`));
    deadlocks.push(
      [
        detail,
        ...involved.map(([by, { statements }]) => `Process ${by.processID}:\n  ${statements.join('\n  ')}`),
      ].join('\n'),
    );
  };
  client.query = function (this: NumberedClient, ...parameters: unknown[]): unknown {
    ask(this, parameters[0], parameters[1]);
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
