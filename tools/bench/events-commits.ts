import { setTimeout as delay } from 'node:timers/promises';
import { carriesNothing, Notes, startBenchService, type Writing } from './events-service.js';
import { comparisonOf, type Comparison } from './measure.js';
import { firstLine, start, stop } from './processes.js';

interface Setting {
  databaseUrl: string;
  /** Which process relays the events: the one that commits, or another replica of its service. */
  relay: 'here' | 'elsewhere';
  /** Rows that a transaction inserts beside its event. */
  rows: number;
}

interface Load {
  connections: number;
  seconds: number;
}

export interface CommitFigures {
  /** Beside the same rows, the event's included, that nobody relays. */
  withRow: Comparison;
  /** Beside transactions without an event and its row. */
  withNone: Comparison;
}

/**
 * Commits a second of transactions with an event, in turn with both floors. The courier delivers the events to nobody.
 */
export async function measureCommits(
  { databaseUrl, relay, rows }: Setting,
  load: Load,
  rounds: number,
): Promise<CommitFigures> {
  const poolSize = load.connections + 2;
  // The replica is started first, so that it leads.
  const replica =
    relay === 'elsewhere' ? start('tools/bench/events-replica.js', [], { DATABASE_URL: databaseUrl }) : undefined;
  if (replica) await firstLine(replica);
  const app = await startBenchService('notes', carriesNothing, databaseUrl, poolSize);
  try {
    const run = (event: Writing['event']) => commitsPerSecond(app.get(Notes), { rows, event }, load);
    for (const event of ['event', 'row', 'none'] as const) await run(event);
    const runs: { event: number; row: number; none: number }[] = [];
    for (let round = 0; round < rounds; round += 1)
      runs.push({ row: await run('row'), event: await run('event'), none: await run('none') });
    return {
      withRow: comparisonOf(runs.map(({ event, row }) => [event, row])),
      withNone: comparisonOf(runs.map(({ event, none }) => [event, none])),
    };
  } finally {
    await app.close();
    if (replica) await stop(replica);
  }
}

async function commitsPerSecond(notes: Notes, writing: Writing, { connections, seconds }: Load): Promise<number> {
  await untilRelayed(notes);
  let commits = 0;
  const startedAt = performance.now();
  const endsAt = startedAt + seconds * 1_000;
  const writer = async () => {
    while (performance.now() < endsAt) {
      await notes.write(writing);
      commits += 1;
    }
  };
  await Promise.all(Array.from({ length: connections }, writer));
  return (commits * 1_000) / (performance.now() - startedAt);
}

/** So that no run pays for the events of the one before. */
async function untilRelayed(notes: Notes): Promise<void> {
  while ((await notes.pending()) > 0) await delay(50);
}
