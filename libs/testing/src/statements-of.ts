import pg from 'pg';

/** A statement as it goes to PostgreSQL. */
export interface SentStatement {
  readonly text: string;
  readonly values: unknown[];
}

type Query = (...parameters: unknown[]) => unknown;

/**
 * The statements that this process sends over any connection while `work` is done, in their order; those of timers and workers too. For specs that count
 * statements or ask PostgreSQL for their plans. Left out is what a connection does for itself every few seconds. One at a time.
 */
export async function statementsOf(work: () => Promise<unknown>): Promise<SentStatement[]> {
  const sent: SentStatement[] = [];
  const keep = (text: string, values: unknown[]) => {
    if (text !== 'DISCARD PLANS') sent.push({ text, values });
  };
  const client = pg.Client.prototype as unknown as { query: Query };
  const { query } = client;
  client.query = function (this: pg.Client, ...parameters: unknown[]): unknown {
    const [first, second] = parameters;
    if (typeof first === 'string') keep(first, Array.isArray(second) ? second : []);
    else {
      const { text, values = Array.isArray(second) ? second : [] } = first as { text?: string; values?: unknown[] };
      if (text !== undefined) keep(text, values);
    }
    return query.apply(this, parameters);
  };
  try {
    await work();
  } finally {
    client.query = query;
  }
  return sent;
}
