import { afterAll } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import pg from 'pg';
import { createApiKey } from '@atoll/api-keys';
import { createDatabase, makeServerFolder, type TestDatabase, timeoutFactor } from '@atoll/testing';
import { call, until, type Operated } from './client.js';
import { startPlatform, type RunningPlatform, type Topology } from './running-platform.js';

const startTimeoutMs = 240_000 * timeoutFactor;

interface Kept {
  folder: string;
  database: TestDatabase;
  client: pg.Client;
}

/**
 * The platform of stories that kill its processes outright: one for all of a file, on data that outlives it, gone with
 * the last of them.
 */
export class MortalPlatform {
  readonly topology = (process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology;
  /** Good after each start again. */
  readonly operated: Operated;
  #running: RunningPlatform | undefined;
  #kept: Kept | undefined;
  #env: Record<string, string> = {};

  constructor() {
    const running = (): RunningPlatform => this.running;
    this.operated = {
      get url() {
        return running().url;
      },
      get adminKey() {
        return running().adminKey;
      },
    };
    afterAll(() => this.stop());
  }

  get running(): RunningPlatform {
    if (!this.#running) throw new Error('There is no platform.');
    return this.#running;
  }

  get databaseUrl(): string {
    if (!this.#kept) throw new Error('There is no database.');
    return this.#kept.database.url;
  }

  /** On a database that outlives the platform, which stories read. */
  async start(): Promise<void> {
    const [folder, database] = [makeServerFolder(), await createDatabase()];
    const client = new pg.Client({ connectionString: database.url });
    this.#kept = { folder, database, client };
    await client.connect();
    // Several stories begin at once there, and a machine may be slow.
    const patience = { ATOLL_DEADLINE_MS: '60000' };
    this.#env = { ATOLL_DATA_DIR: folder, ATOLL_ADMIN_KEY: createApiKey(), DATABASE_URL: database.url, ...patience };
    this.#running = await startPlatform(this.topology, this.#env);
  }

  async query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    if (!this.#kept) throw new Error('There is no database.');
    return (await this.#kept.client.query<Row>(sql, values)).rows;
  }

  /**
   * Kills what runs a service, over NATS its process alone, otherwise the platform, and waits until that answers again.
   */
  async kill(service: 'pods' | 'gpuaas'): Promise<void> {
    const latest = () =>
      Number([...this.running.output().matchAll(new RegExp(`^${service}: process (\\d+)$`, 'gm'))].at(-1)?.[1]);
    if (this.topology === 'services') {
      const killed = latest();
      process.kill(killed, 'SIGKILL');
      await until(
        () => Promise.resolve(latest()),
        (pid) => pid !== killed,
      );
    } else {
      this.running.process.kill('SIGKILL');
      await once(this.running.process, 'exit');
      this.#running = await startPlatform(this.topology, this.#env);
    }
    const path = service === 'pods' ? '/pod-limits' : '/region';
    await until(
      () => call('GET', path, { url: this.operated.url, key: this.operated.adminKey }),
      ({ status }) => status === 200,
      startTimeoutMs,
    );
  }

  private async stop(): Promise<void> {
    try {
      await this.#running?.stop();
    } finally {
      this.#running = undefined;
      await this.#kept?.client.end();
      await this.#kept?.database.drop();
      if (this.#kept) rmSync(this.#kept.folder, { recursive: true, force: true });
      this.#kept = undefined;
    }
  }
}

/**
 * Where so many stories wait for each other. What `act` does, or throws, when all are there is done once, for all of
 * them.
 */
function meeting(stories: number, act: () => Promise<void> = () => Promise.resolve()): () => Promise<void> {
  let arrived = 0;
  let all = Promise.withResolvers<void>();
  return () => {
    const { promise, resolve } = all;
    arrived += 1;
    if (arrived === stories) {
      [arrived, all] = [0, Promise.withResolvers<void>()];
      resolve(act());
    }
    return promise;
  };
}

/**
 * Begins something, and is killed in the middle of it: what hangs until then, or what passes by itself after a while.
 */
export type Dies = <T>(lasts: 'hangs' | 'passes', begin: () => Promise<T>) => Promise<T>;

/**
 * One kill for all of the stories that run together. What passes is begun once all that hangs does, so that everybody
 * is in the middle.
 */
export function killedTogether(stories: number, kill: () => Promise<void>): Dies {
  const [ready, hanging, killed] = [meeting(stories), meeting(stories), meeting(stories, kill)];
  return async (lasts, begin) => {
    await ready();
    if (lasts === 'passes') await hanging();
    const begun = await begin();
    if (lasts === 'hangs') await hanging();
    await killed();
    return begun;
  };
}

/** Kills a platform with all processes that it has started, its database among them. */
export async function killEverything({ process: root }: RunningPlatform): Promise<void> {
  const pairs = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number));
  const below = (parent: number): number[] =>
    pairs.flatMap(([pid = 0, of]) => (of === parent ? [pid, ...below(pid)] : []));
  const ended = once(root, 'exit');
  for (const pid of [root.pid ?? 0, ...below(root.pid ?? 0)]) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      // It has ended since it was listed.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
  await ended;
}
