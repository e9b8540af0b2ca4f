import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import { copyIn, copyOut } from './copy.js';
import type { Installation } from './installation.js';
import { comparisonOf, type Comparison } from './measure.js';

const batchSize = 1000;
const teamCount = 20;
const resourcesPerTeam = 100;
const duplicateShare = 0.3;
const lateShare = 0.1;
const tickMs = 3_600_000;
const longestDelayMs = 7 * 24 * 3_600_000;

export interface IngestFigures {
  /** Facts a second: all that were told, beside rows a second of one COPY of those that were new. */
  told: Comparison;
  /** The same, but only the new ones counted: the stricter figure, as COPY has no duplicates to find. */
  added: Comparison;
  /** With indexes. */
  bytesPerFact: number;
  /** What the tables grow by: the pages that inserts at random places leave half empty included. */
  bytesPerSegment: number;
}

interface Resource {
  team_id: string;
  workspace_id: string;
  resource_id: string;
}

type Told = { accepted: number; duplicates: number };

interface Load {
  rounds: number;
  /** A round. */
  batches: number;
  connections: number;
}

/** All in facts or rows a second. */
interface Round {
  told: number;
  added: number;
  copied: number;
}

/**
 * Posts batches of facts, and copies what became of them into a table of the same form, in turn. The first round does
 * not count.
 */
export async function measureIngest(platform: Installation, client: pg.Client, load: Load): Promise<IngestFigures> {
  await client.query('CREATE SCHEMA bench; CREATE TABLE bench.usage_fact (LIKE billing.usage_fact INCLUDING ALL)');
  const meter = new Meter(await makeResources(platform), (load.rounds + 1) * load.batches);
  await measureRound(platform, client, meter, load);
  const before = await sizeOf(client, segmentTables);
  const rounds: Round[] = [];
  for (let round = 0; round < load.rounds; round++) rounds.push(await measureRound(platform, client, meter, load));
  const after = await sizeOf(client, segmentTables);
  const facts = await sizeOf(client, ['usage_fact']);
  return {
    told: comparisonOf(rounds.map(({ told, copied }) => [told, copied])),
    added: comparisonOf(rounds.map(({ added, copied }) => [added, copied])),
    bytesPerFact: facts.bytes / facts.rows,
    bytesPerSegment: (after.bytes - before.bytes) / (after.rows - before.rows),
  };
}

async function measureRound(
  platform: Installation,
  client: pg.Client,
  meter: Meter,
  { batches, connections }: Load,
): Promise<Round> {
  const source = `bench ${Date.now()}`;
  const bodies = Array.from({ length: batches }, () => meter.batch(source));
  const [told, postS] = await timed(() => postAll(platform, bodies, connections));
  if (told.accepted + told.duplicates !== batches * batchSize)
    throw new Error(`Not all facts were taken: ${JSON.stringify(told)}`);
  // In the order in which they were told.
  const rows = await copyOut(
    client,
    `COPY (SELECT * FROM billing.usage_fact WHERE source = '${source}' ORDER BY ctid) TO STDOUT`,
  );
  const [, copyS] = await timed(() => copyIn(client, 'COPY bench.usage_fact FROM STDIN', rows));
  for (const table of segmentTables) await client.query(`VACUUM billing.${table}`);
  return { told: (batches * batchSize) / postS, added: told.accepted / postS, copied: told.accepted / copyS };
}

export interface TableSize {
  /** With indexes. */
  bytes: number;
  rows: number;
}

/** Those that have ended and those that hold now. */
export const segmentTables = ['segment', 'open_segment'];

/** Of some of billing's tables together. */
export async function sizeOf(client: pg.Client, tables: readonly string[]): Promise<TableSize> {
  const sum: TableSize = { bytes: 0, rows: 0 };
  for (const table of tables) {
    const { rows } = await client.query<TableSize>(
      `SELECT pg_total_relation_size('billing.${table}')::float8 AS bytes, count(*)::float8 AS rows FROM billing.${table}`,
    );
    sum.bytes += rows[0]?.bytes ?? 0;
    sum.rows += rows[0]?.rows ?? 0;
  }
  return sum;
}

async function makeResources(platform: Installation): Promise<Resource[]> {
  const resources: Resource[] = [];
  for (let team = 0; team < teamCount; team++) {
    const { id, workspaces } = await platform.send<{ id: string; workspaces: { id: string }[] }>('POST', '/team', {
      name: `Metered ${team}`,
    });
    for (let number = 0; number < resourcesPerTeam; number++) {
      resources.push({ team_id: id, workspace_id: workspaces[0]?.id ?? '', resource_id: `pod:${number}` });
    }
  }
  return resources;
}

/**
 * A meter that reads each resource in turn, once an hour: mostly in order, some of it late, some of it told a second
 * time.
 */
class Meter {
  private readonly told: object[] = [];
  private readonly startMs: number;
  private reading = 0;
  private seed = 1;

  /** `batches` at most; the last reading is now. */
  constructor(
    private readonly resources: readonly Resource[],
    batches: number,
  ) {
    this.startMs = Math.floor(Date.now() - (batches * batchSize * tickMs) / resources.length);
  }

  batch(source: string): string {
    const known = this.told.length;
    const events = Array.from({ length: batchSize }, () => {
      const again = known > 0 && this.draw() < duplicateShare ? this.told[Math.floor(this.draw() * known)] : undefined;
      return again ?? this.read(source);
    });
    return JSON.stringify({ events });
  }

  private read(source: string): object {
    const number = this.reading++;
    const delayMs = this.draw() < lateShare ? this.draw() * longestDelayMs : 0;
    const timeMs = this.startMs + (number / this.resources.length) * tickMs - delayMs;
    const fact = {
      source,
      // Ids tell nothing of the time: the index is written to at random places, as by most senders.
      id: randomBytes(12).toString('hex'),
      time: new Date(timeMs).toISOString(),
      ...this.resources[number % this.resources.length],
      kind: 'pod',
      sku: 'pod',
      quantity: Math.floor(this.draw() * 16) / 4,
    };
    this.told.push(fact);
    return fact;
  }

  /** From 0 to 1; the same numbers at each run. */
  private draw(): number {
    this.seed = (Math.imul(this.seed, 1_664_525) + 1_013_904_223) >>> 0;
    return this.seed / 2 ** 32;
  }
}

/** Each connection takes the next batch when its last one is answered. */
async function postAll(platform: Installation, bodies: readonly string[], connections: number): Promise<Told> {
  const sum: Told = { accepted: 0, duplicates: 0 };
  const waiting = bodies.values();
  const work = async () => {
    for (const body of waiting) {
      const { accepted, duplicates } = JSON.parse(
        (await platform.call('POST', '/usage-events', body)).toString(),
      ) as Told;
      sum.accepted += accepted;
      sum.duplicates += duplicates;
    }
  };
  await Promise.all(Array.from({ length: connections }, work));
  return sum;
}

async function timed<T>(work: () => Promise<T>): Promise<[T, seconds: number]> {
  const startedAt = performance.now();
  const result = await work();
  return [result, (performance.now() - startedAt) / 1000];
}
