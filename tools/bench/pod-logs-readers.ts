import { randomBytes, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { SimulatedWorld } from '@atoll/cluster';
import { rowsOf } from '@atoll/database';
import { InProcessBus } from '@atoll/rpc';
import type { ServiceDefinition } from '@atoll/service';
import { BareServiceUnderTest, OwnerOfTeams, startServiceUnderTest } from '@atoll/testing';
import type pg from 'pg';
import { DataSource } from 'typeorm';
import { withClient } from './with-client.js';

type Class<T> = abstract new (...parts: never[]) => T;
interface Collector {
  collect(): Promise<void>;
  beforeApplicationShutdown(): Promise<void>;
}

export interface ReadersLoad {
  /** Simulated pods that run, all but one of one team. Each writes a line a second. */
  readonly pods: number;
  readonly seconds: number;
}

export interface ReadersFigures {
  /** Seconds of CPU of the service's process, a second. */
  readonly cpu: number;
  /** As that, of PostgreSQL: of what serves connections. */
  readonly databaseCpu: number;
  /** Transactions in PostgreSQL, a second. */
  readonly transactions: number;
  /** Lines that were stored, a second. */
  readonly lines: number;
  /** How old the newest stored line of the other team's one pod is, milliseconds, p50 and longest. */
  readonly ageP50Ms: number;
  readonly ageMaxMs: number;
}

const collectMs = 1_000;
const sampleMs = 100;
const warmUpS = 10;

/** What it takes to read so many pods at once, at rest: each writes a line a second. */
export async function measureReaders({ pods: count, seconds }: ReadersLoad): Promise<ReadersFigures> {
  const built = (path: string) => new URL(`../../apps/pods/src/${path}`, import.meta.url).href;
  const { service } = (await import(built('service.js'))) as { service: ServiceDefinition };
  const { Clusters } = (await import(built('cluster/clusters.js'))) as { Clusters: Class<object> };
  const { LogCollector } = (await import(built('logs/log-collector.js'))) as { LogCollector: Class<Collector> };
  const bus = new InProcessBus();
  new OwnerOfTeams(bus);
  const settings = {
    sealKeys: `bench:${randomBytes(32).toString('base64')}`,
    workers: { isIdle: true },
    sshPort: 'off',
  };
  const clusters = { driverOf: () => Promise.resolve(world.cluster('bench')) };
  const started = await startServiceUnderTest(service, {
    bus,
    settings,
    providers: [{ provide: Clusters, useValue: clusters }],
  });
  const pods = new BareServiceUnderTest(started);
  const world = new SimulatedWorld({
    store: rowsOf(pods.get(DataSource)),
    listenHost: '127.0.0.1',
    pullMs: 0,
    secrets: { seal: String, open: String },
  });
  await world.ready();
  const collector = pods.get(LogCollector);
  const figures = await withClient(started.database.url, async (client) => {
    await client.query('SET search_path TO pods, public');
    await makePods(client, count - 1, randomUUID());
    const single = await makePods(client, 1, randomUUID());
    const stop = new AbortController();
    const collecting = collectUntil(collector, stop.signal);
    await delay(warmUpS * 1000);
    const measured = await measure(client, single, seconds);
    stop.abort();
    await collecting;
    return measured;
  });
  await collector.beforeApplicationShutdown();
  await pods.stop();
  return figures;
}

async function collectUntil(collector: Collector, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await collector.collect();
    await delay(collectMs, undefined, { signal }).catch(() => undefined);
  }
}

async function measure(client: pg.Client, podId: string, seconds: number): Promise<ReadersFigures> {
  const before = { ...(await counted(client)), ...process.cpuUsage(), at: performance.now() };
  const ages: number[] = [];
  while (performance.now() - before.at < seconds * 1000) {
    const { rows } = await client.query<{ at_ms: string }>(
      `SELECT max(at_ns) / 1000000 AS at_ms FROM log_line JOIN log_source source ON source.no = source_no WHERE pod_id = $1`,
      [podId],
    );
    ages.push(Date.now() - Number(rows[0]?.at_ms ?? 0));
    await delay(sampleMs);
  }
  const [after, cpu] = [await counted(client), process.cpuUsage()];
  const elapsedS = (performance.now() - before.at) / 1000;
  ages.sort((one, other) => one - other);
  return {
    cpu: (cpu.user + cpu.system - before.user - before.system) / 1e6 / elapsedS,
    databaseCpu: (after.databaseCpu - before.databaseCpu) / elapsedS,
    transactions: (after.transactions - before.transactions) / elapsedS,
    lines: (after.lines - before.lines) / elapsedS,
    ageP50Ms: ages[Math.floor(ages.length / 2)] ?? NaN,
    ageMaxMs: ages.at(-1) ?? NaN,
  };
}

async function counted(client: pg.Client): Promise<{ transactions: number; lines: number; databaseCpu: number }> {
  const { rows } = await client.query<{ transactions: string; lines: string; pid: number }>(
    `SELECT xact_commit AS transactions, (SELECT count(*) FROM log_line) AS lines, pg_backend_pid() AS pid
     FROM pg_stat_database WHERE datname = current_database()`,
  );
  const [row] = rows;
  return {
    transactions: Number(row?.transactions),
    lines: Number(row?.lines),
    databaseCpu: secondsOfSiblings(row?.pid ?? 0),
  };
}

/** Seconds of CPU of all processes that have the parent of this one (Linux). */
function secondsOfSiblings(pid: number): number {
  // After the name in parentheses: state, parent, …, and as the 12th and 13th user and system time in hundredths of a
  // second.
  const stats = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        return [
          {
            pid: Number(name),
            fields: (readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1) ?? '').split(' '),
          },
        ];
      } catch {
        return [];
      }
    });
  const parent = stats.find((each) => each.pid === pid)?.fields[1];
  return stats
    .filter(({ fields }) => fields[1] === parent)
    .reduce((sum, { fields }) => sum + (Number(fields[11]) + Number(fields[12])) / 100, 0);
}

/** Pods of one team that run in a simulated cluster. Returns the id of the last. */
async function makePods(client: pg.Client, count: number, teamId: string): Promise<string> {
  const { rows } = await client.query<{ pod_id: string }>(
    `WITH made AS (
       INSERT INTO pod (pod_id, pod_name, name, team_id, workspace_id, subscription_id, gpuaas_id, region_id, profile, image, vgpus, command, ports,
         volumes, restart, start, run, state, entered_at)
       SELECT gen_random_uuid(), 'pod-' || gen_random_uuid(), 'pod', $1, $1, 1, 1, 1, '1g.10gb', 'busybox', 1, '[]', '[]', '[]', 'always', 1, 1,
         'stopped', now()
       FROM generate_series(1, $2::integer) RETURNING pod_id, pod_name
     ), runs AS (
       INSERT INTO pod_run (pod_id, run, gpuaas_id) SELECT pod_id, 1, 1 FROM made
     ), simulated AS (
       INSERT INTO simulated_cluster.run (cluster, kind, id, run, name, spec, requested_at, ready_at)
       SELECT 'bench', 'pod', pod_id, 1, pod_name, '{"image": "busybox", "command": [], "slices": [], "volumes": []}', now(),
         now() + random() * interval '1 second'
       FROM made
     )
     SELECT pod_id FROM made`,
    [teamId, count],
  );
  return rows.at(-1)?.pod_id ?? '';
}
