import { beforeAll, expect, it } from '@jest/globals';
import { once } from 'node:events';
import pg from 'pg';
import { createApiKey } from '@atoll/api-keys';
import { runningPostgresUrl } from '@atoll/database';
import { makeServerFolder } from '@atoll/testing';
import { call, until, type Operated } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';
import { killEverything } from './mortal-platform.js';
import { OwnPlatform } from './own-platform.js';
import type { RunningPlatform, Topology } from './running-platform.js';
import { recoveryMs, subscriber } from './subscriber.js';

const topology = (process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology;
/** A worker's claim, the longest back-off of a step, and that of asking again. */
const deletionMs = 60_000;

const own = new OwnPlatform();
let folder: string;
let platform: RunningPlatform;
const adminKey = createApiKey();
const operated: Operated = {
  get url() {
    return platform.url;
  },
  adminKey,
};

/** In a process group of its own, on the data of the one before. */
async function start(): Promise<void> {
  platform = await own.start(topology, { ATOLL_DATA_DIR: folder, ATOLL_ADMIN_KEY: adminKey }, { ownGroup: true });
}

beforeAll(async () => {
  own.folder = folder = makeServerFolder();
  await start();
});

async function query(sql: string, values: unknown[] = []): Promise<void> {
  const client = new pg.Client({ connectionString: runningPostgresUrl(folder) });
  await client.connect();
  try {
    await client.query(sql, values);
  } finally {
    await client.end();
  }
}

/**
 * A team that is being deleted with what it holds, which a node does not let go of: said after 8 s, with what is left.
 */
async function deletion() {
  const node = await createNode({ name: 'gpu-that-holds', platform: operated });
  const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 }, operated);
  const tenant = await createTenant('Slow', ['member'], operated);
  const { body } = await tenant.subscribe({ pool_id: poolId, vgpus: 2 });
  await tenant.subscribed(body.subscription_id);
  await query(
    `INSERT INTO gpuaas.simulated_fault (node_name, operation, kind, times) VALUES ('gpu-that-holds', 'vacate', 'hang', 1000)`,
  );
  const path = `/team/${tenant.teamId}`;
  const access = () => ({ url: operated.url, key: adminKey });
  // Workers that are busy may have more left after 8 s, or not have told of it.
  const slow = await until(
    () => call<{ remaining?: { kind: string; count: number | null }[] }>('DELETE', `${path}?force=true`, access()),
    ({ body: { remaining = [] } }) =>
      remaining.map(({ kind, count }) => `${count} ${kind}`).join() === '1 gpu_pool_subscription',
  );
  expect([slow.status, slow.body]).toEqual([
    202,
    { id: tenant.teamId, status: 'deleting', remaining: [{ kind: 'gpu_pool_subscription', count: 1 }] },
  ]);
  expect((await call('GET', path, access())).body).toMatchObject({ status: 'deleting' });
  return {
    ends: async () => {
      await query('DELETE FROM gpuaas.simulated_fault');
      await until(
        () => call('GET', path, access()),
        ({ status }) => status === 404,
        deletionMs,
      );
    },
  };
}

/** Pods, of which one serves and two are about to start. */
async function podsUnderWay() {
  const team = await subscriber(operated);
  const web = await team.create('web');
  await team.runs(web.pod_name);
  return {
    begin: async () => {
      const { service_id } = await team.expose(web.pod_name);
      const pods = [web, await team.create('one'), await team.create('two')];
      return {
        comeBack: async () => {
          for (const { pod_name } of pods) await team.runs(pod_name);
          const { body: service } = await until(
            () => team.service(service_id),
            ({ body }) => body.status === 'active',
            recoveryMs,
          );
          await until(
            () => fetch(service.url).catch(() => null),
            (answer) => answer?.ok === true,
            recoveryMs,
          );
        },
        areAsBefore: async () => {
          await team.holds(pods);
          for (const { pod_name } of pods) expect((await team.runs(pod_name)).body.restarts).toBe(0);
        },
      };
    },
  };
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it('everything comes back and goes on where all processes are killed at once, PostgreSQL too', async () => {
  const [pods, team] = await Promise.all([podsUnderWay(), deletion()]);
  const begun = await pods.begin();
  await killEverything(platform);

  const startMs = performance.now();
  await start();
  const readyMs = performance.now() - startMs;
  await begun.comeBack();
  const doneMs = performance.now() - startMs;
  process.stdout.write(
    `Killed at once: ready after ${Math.round(readyMs)} ms, all work done after ${Math.round(doneMs)} ms.\n`,
  );
  await begun.areAsBefore();
  await team.ends();
});

/** The last of these stories: it stops the platform. */
it('Ctrl-C in a terminal lets what is under way end, and leaves no process behind', async () => {
  const ended = once(platform.process, 'exit');
  // As a terminal does: to the whole group. And once more, as npm does with what it gets itself.
  process.kill(-(platform.process.pid ?? 0), 'SIGINT');
  platform.process.kill('SIGINT');
  expect(await ended).toEqual([0, null]);
  const started = [...platform.output().matchAll(/^[\w ]+: process (\d+)$/gm)].map(([, pid]) => Number(pid));
  expect(started.filter(isRunning)).toEqual([]);
  await expect(fetch(`${platform.url}/livez`)).rejects.toThrow();
  expect(platform.output()).not.toMatch(/"level":"(error|fatal)"/);
});
