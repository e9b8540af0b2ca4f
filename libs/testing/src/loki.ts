import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.js';
import { cachePath } from './machine.js';

const binary = cachePath('loki-v3.7.8');
const startTimeoutMs = 60_000;

/** Why specs that store logs in Loki cannot run here; undefined: they can. */
export function lokiLacks(): string | undefined {
  return existsSync(binary) ? undefined : 'Loki was not found';
}

/** What a tenant may push: `limits_config` of Loki, in MB a second and MB at once. */
export interface LokiLimits {
  readonly ingestion_rate_mb: number;
  readonly ingestion_burst_size_mb: number;
}

/** A real Loki on loopback, which asks for a tenant. */
export interface Loki {
  readonly url: string;
  /** Ends it as a crash does. `restart` brings it back. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  /** Ends it and removes what it stored. */
  stop(): Promise<void>;
}

/**
 * Starts a Loki on a free port, and ends it with this process at the latest. `limits` are those of single tenants, by
 * the tenant's name.
 */
export async function startLoki(limits: Readonly<Record<string, LokiLimits>> = {}): Promise<Loki> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-loki-'));
  const [port, grpcPort] = [await freePort(), await freePort()];
  const file = join(folder, 'loki.yaml');
  await writeFile(join(folder, 'limits.yaml'), JSON.stringify({ overrides: limits }));
  await writeFile(file, configuration(folder, port, grpcPort));
  const url = `http://127.0.0.1:${port}`;
  let child = await start(file, url);
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return {
    url,
    kill,
    async restart() {
      await kill();
      child = await start(file, url);
    },
    async stop() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function start(file: string, url: string): Promise<ChildProcess> {
  const child = spawn(binary, [`-config.file=${file}`], { stdio: ['ignore', 'ignore', 'pipe'] });
  const endWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', endWithUs);
  child.once('exit', () => process.off('exit', endWithUs));
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-4000)));
  const deadlineAtMs = Date.now() + startTimeoutMs;
  while (!(await isReady(url))) {
    if (child.exitCode !== null || Date.now() > deadlineAtMs) {
      child.kill('SIGKILL');
      throw new Error(`Loki did not start: ${log}`);
    }
    await delay(50);
  }
  return child;
}

async function isReady(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/ready`);
    await answer.body?.cancel();
    return answer.ok;
  } catch {
    return false;
  }
}

/**
 * Ready after one second instead of ten by the two look-up periods; without labels of its own making by the two
 * `discover` limits; by the split, a query of all that is retained is run in a few parts and not in one for each hour.
 */
function configuration(folder: string, port: number, grpcPort: number): string {
  return `
auth_enabled: true
server: {http_listen_address: 127.0.0.1, http_listen_port: ${port}, grpc_listen_address: 127.0.0.1, grpc_listen_port: ${grpcPort}, log_level: warn}
common:
  path_prefix: ${folder}
  replication_factor: 1
  instance_addr: 127.0.0.1
  ring: {instance_addr: 127.0.0.1, kvstore: {store: inmemory}}
  storage: {filesystem: {chunks_directory: ${folder}/chunks, rules_directory: ${folder}/rules}}
schema_config:
  configs: [{from: 2024-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {prefix: index_, period: 24h}}]
ingester: {lifecycler: {min_ready_duration: 0s, final_sleep: 0s}}
frontend: {scheduler_dns_lookup_period: 500ms}
frontend_worker: {dns_lookup_duration: 500ms}
analytics: {reporting_enabled: false}
runtime_config: {file: ${folder}/limits.yaml}
limits_config: {discover_service_name: [], discover_log_levels: false, split_queries_by_interval: 24h}
`;
}
