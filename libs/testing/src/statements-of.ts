import { AsyncLocalStorage } from 'node:async_hooks';
import pg from 'pg';

/** A statement as it goes to PostgreSQL. */
export interface SentStatement {
  readonly text: string;
  readonly values: unknown[];
}

type Query = (...parameters: unknown[]) => unknown;

const works = new AsyncLocalStorage<SentStatement[]>();

/**
 * The statements that `work` sends over any connection of this process, in their order, for specs that count them.
 * Those of timers and workers, which come when they will, are not its own. One at a time.
 */
export async function statementsOf(work: () => Promise<unknown>): Promise<SentStatement[]> {
  const sent: SentStatement[] = [];
  await listen(
    (statement) => works.getStore()?.push(statement),
    () => works.run(sent, work),
  );
  return sent;
}

/** As `statementsOf`, with those of timers and workers: for specs that ask PostgreSQL for the plans of all. */
export async function allStatementsDuring(work: () => Promise<unknown>): Promise<SentStatement[]> {
  const sent: SentStatement[] = [];
  await listen((statement) => sent.push(statement), work);
  return sent;
}

/**
 * Does `meanwhile` before `work` sends its statement of this place, counted from 0: for specs of what others commit
 * between two statements. Throws where `work` sends fewer.
 */
export async function beforeStatement<T>(
  place: number,
  meanwhile: () => Promise<unknown>,
  work: () => Promise<T>,
): Promise<T> {
  let left = place;
  const counted = () => {
    if (works.getStore() === undefined) return undefined;
    left -= 1;
    return left === -1 ? works.exit(meanwhile) : undefined;
  };
  const done = await listen(counted, () => works.run([], work));
  if (left >= 0) throw new Error(`It sent ${place - left} statements, and not ${place + 1}.`);
  return done;
}

/** A statement waits for what `heard` returns of it, if that is a promise. */
async function listen<T>(heard: (statement: SentStatement) => unknown, work: () => Promise<T>): Promise<T> {
  const client = pg.Client.prototype as unknown as { query: Query };
  const { query } = client;
  client.query = function (this: pg.Client, ...parameters: unknown[]): unknown {
    const [first, second] = parameters;
    const given: Partial<SentStatement> = typeof first === 'string' ? { text: first } : (first as object);
    const { text, values = Array.isArray(second) ? second : [] } = given;
    // What a connection sends for itself every few seconds.
    const waits = text !== undefined && text !== 'DISCARD PLANS' && heard({ text, values });
    return waits instanceof Promise ? waits.then(() => query.apply(this, parameters)) : query.apply(this, parameters);
  };
  try {
    return await work();
  } finally {
    client.query = query;
  }
}
