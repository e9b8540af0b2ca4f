import { randomBytes, randomUUID } from 'node:crypto';
import { InProcessBus } from '@atoll/rpc';
import { BareServiceUnderTest, OwnerOfTeams, startServiceUnderTest } from '@atoll/testing';
import type { ServiceDefinition } from '@atoll/service';
import type pg from 'pg';
import { copyIn, copyOut } from './copy.js';
import { comparisonOf, type Comparison } from './measure.js';
import { withClient } from './with-client.js';

type Class<T> = abstract new (...parts: never[]) => T;
interface Collector {
  collect(): Promise<void>;
  idle(): Promise<void>;
}

const perBatch = 500;
const message = (number: number) =>
  `epoch ${number % 90} step ${number} loss=${(1 / (1 + (number % 1000))).toFixed(4)} lr=0.0003 tokens/s=18423`;

/**
 * Lines a second from the engines of so many pods to their rows, beside COPY of the same rows into a table of the same
 * form.
 */
export async function measureIngest(load: { pods: number; lines: number; rounds: number }): Promise<Comparison> {
  const built = (path: string) => new URL(`../../apps/pods/src/${path}`, import.meta.url).href;
  const { service } = (await import(built('service.js'))) as { service: ServiceDefinition };
  const { Clusters } = (await import(built('cluster/clusters.js'))) as { Clusters: Class<object> };
  const { LogCollector } = (await import(built('logs/log-collector.js'))) as { LogCollector: Class<Collector> };
  const bus = new InProcessBus();
  new OwnerOfTeams(bus);
  const limits = { logLinesPerSecond: 1e9, logKibPerSecond: 1e9, logTeamMibPerDay: 1e6 };
  const settings = { sealKeys: `bench:${randomBytes(32).toString('base64')}`, workers: { isIdle: true }, ...limits };
  const driver = { readLogs: () => linesOf(Math.ceil(load.lines / load.pods)) };
  const clusters = { driverOf: () => Promise.resolve(driver) };
  const started = await startServiceUnderTest(service, {
    bus,
    settings,
    providers: [{ provide: Clusters, useValue: clusters }],
  });
  const pods = new BareServiceUnderTest(started);
  const collector = pods.get(LogCollector);
  const rounds = await withClient(started.database.url, async (client) => {
    await client.query('SET search_path TO pods, public; CREATE TABLE copied (LIKE log_line INCLUDING ALL)');
    const measured: [number, number][] = [];
    for (let round = -1; round < load.rounds; round++) {
      const figures = await measureRound(client, collector, load);
      if (round >= 0) measured.push(figures);
    }
    return measured;
  });
  await pods.stop();
  return comparisonOf(rounds);
}

async function measureRound(
  client: pg.Client,
  collector: Collector,
  { pods }: { pods: number },
): Promise<[number, number]> {
  await client.query('TRUNCATE copied');
  const { rows } = await client.query<{ count: number }>('SELECT count(*)::integer AS count FROM log_line');
  const before = rows[0]?.count ?? 0;
  for (let pod = 0; pod < pods; pod++) await makePod(client);
  const [, ingestS] = await timed(async () => {
    await collector.collect();
    await collector.idle();
  });
  const copied = await copyOut(
    client,
    `COPY (SELECT * FROM log_line ORDER BY at_ns DESC LIMIT (SELECT count(*) - ${before} FROM log_line)) TO STDOUT`,
  );
  const [, copyS] = await timed(() => copyIn(client, 'COPY copied FROM STDIN', copied));
  const { rows: after } = await client.query<{ count: number }>('SELECT count(*)::integer AS count FROM copied');
  const lines = after[0]?.count ?? 0;
  return [lines / ingestS, lines / copyS];
}

async function makePod(client: pg.Client): Promise<void> {
  const podId = randomUUID();
  await client.query(
    `INSERT INTO pod (pod_id, pod_name, name, team_id, workspace_id, subscription_id, gpuaas_id, region_id, profile, image, vgpus, command, ports,
       volumes, restart, start, run, state, entered_at)
     VALUES ($1, $2, 'pod', $3, $3, 1, 1, 1, '1g.10gb', 'busybox', 1, '[]', '[]', '[]', 'always', 1, 1, 'stopped', now())`,
    [podId, `pod-${podId}`, randomUUID()],
  );
  await client.query('INSERT INTO pod_run (pod_id, run, gpuaas_id) VALUES ($1, 1, 1)', [podId]);
}

/** What an engine gives: batches of lines of now, to the nanosecond. */
async function* linesOf(count: number): AsyncGenerator<object> {
  for (let at = 0; at < count; at += perBatch) {
    const second = new Date().toISOString().slice(0, 19);
    const lines = Array.from({ length: Math.min(perBatch, count - at) }, (_, index) => ({
      timestamp: `${second}.${String(at + index).padStart(9, '0')}Z`,
      stream: 'stdout',
      message: message(at + index),
      isCut: false,
    }));
    yield await Promise.resolve({ lines, cursor: String(at + lines.length), isComplete: at + perBatch >= count });
  }
}

async function timed<T>(work: () => Promise<T>): Promise<[T, seconds: number]> {
  const startedAt = performance.now();
  const result = await work();
  return [result, (performance.now() - startedAt) / 1000];
}
