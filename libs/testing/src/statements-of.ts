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

async function listen(keep: (statement: SentStatement) => unknown, work: () => Promise<unknown>): Promise<void> {
  const client = pg.Client.prototype as unknown as { query: Query };
  const { query } = client;
  client.query = function (this: pg.Client, ...parameters: unknown[]): unknown {
    const [first, second] = parameters;
    const given: Partial<SentStatement> = typeof first === 'string' ? { text: first } : (first as object);
    const { text, values = Array.isArray(second) ? second : [] } = given;
    // What a connection sends for itself every few seconds.
    if (text !== undefined && text !== 'DISCARD PLANS') keep({ text, values });
    return query.apply(this, parameters);
  };
  try {
    await work();
  } finally {
    client.query = query;
  }
}
