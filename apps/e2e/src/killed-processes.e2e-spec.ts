import { expect, it } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApiKey } from '@atoll/api-keys';
import { timeoutFactor } from '@atoll/testing';
import { call, createTeam, fresh, succeed, until, type Operated } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';
import { killEverything, MortalPlatform } from './mortal-platform.js';
import { OwnPlatform } from './own-platform.js';

const storyMs = 180_000 * timeoutFactor;
/** What died with a step in its hands keeps it for 5 s at most. */
const recoveryMs = 45_000;
const shares = { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 };

interface PodView {
  pod_name: string;
  pod_id: string;
  status: string;
  restarts: number;
}

interface ServiceView {
  service_id: string;
  status: string;
  url: string;
}

const mortal = new MortalPlatform();
const { operated } = mortal;
const own = new OwnPlatform();
/** In one process they die together. */
const victims = mortal.topology === 'services' ? (['pods', 'gpuaas'] as const) : (['pods'] as const);

/** The next call of this kind to the cluster hangs until its caller gives up, or dies. */
async function hang(gpuaasId: string, operation: 'start' | 'stop' | 'door'): Promise<{ untilItDoes: () => Promise<unknown> }> {
  const cluster = `gpuaas-${gpuaasId}`;
  await mortal.query(
    `INSERT INTO simulated_cluster.fault (cluster, operation, kind, times) VALUES ($1, $2, 'hang', 1)
     ON CONFLICT (cluster, operation) DO UPDATE SET times = 1`,
    [cluster, operation],
  );
  const left = 'SELECT times FROM simulated_cluster.fault WHERE cluster = $1 AND operation = $2';
  return {
    untilItDoes: () =>
      until(
        () => mortal.query<{ times: number }>(left, [cluster, operation]),
        ([fault]) => fault?.times === 0,
      ),
  };
}

/** A tenant with a subscription on a pool of its own. */
async function subscriber(platform: Operated = operated) {
  const node = await createNode({ platform });
  const { poolId } = await createPool(node, shares, platform);
  const tenant = await createTenant('Survivors', ['member', 'billing_viewer'], platform);
  const { subscription_id } = (await tenant.subscribe({ pool_id: poolId, vgpus: 3 })).body;
  await tenant.subscribed(subscription_id);
  const access = () => ({ url: platform.url, key: tenant.key });
  const read = (pod_name: string) => call<PodView>('GET', `/pods/${pod_name}`, access());
  return {
    node,
    tenant,
    subscription_id,
    create: (name: string) =>
      succeed<PodView>('POST', '/pods', {
        ...access(),
        body: { team_id: tenant.teamId, subscription_id, name, image: 'python:3.13' },
      }),
    remove: (pod_name: string) => succeed('DELETE', `/pods/${pod_name}`, access()),
    runs: (pod_name: string) =>
      until(
        () => read(pod_name),
        ({ body }) => body.status === 'running',
        recoveryMs,
      ),
    gone: (pod_name: string) =>
      until(
        () => read(pod_name),
        ({ status }) => status === 404,
        recoveryMs,
      ),
    expose: (pod_name: string) =>
      succeed<ServiceView>('POST', '/pods/expose-service', {
        ...access(),
        body: { pod_name, service_name: 'web', port: 8080, protocol: 'HTTP' },
      }),
    service: (service_id: string) => call<ServiceView>('GET', `/pods/expose-service/status?service_id=${service_id}`, access()),
    unexpose: (service_id: string) => succeed('DELETE', `/pods/delete-exposed-service/${service_id}`, access()),
    /** Waits until the workloads of the team are those of these pods and no others: gpuaas ends one a step after its pod. */
    holds: async (pods: PodView[]) => {
      const path = `/gpuaas/workload?team_id=${tenant.teamId}`;
      const names = async () =>
        (await succeed<{ data: { name: string }[] }>('GET', path, access())).data.map(({ name }) => name).toSorted();
      const expected = pods.map(({ pod_name }) => pod_name).toSorted();
      await until(names, (found) => found.join() === expected.join(), recoveryMs);
    },
    free: async () => (await tenant.offers(node.gpuaasId))[0]?.available_vgpus,
  };
}

/** One unit for a second. */
async function priceBySecond(sku: string, unit: string, team_id: string): Promise<void> {
  const terms = { sku, unit, unit_price: '3600', valid_from: '2026-01-01T00:00:00Z', team_id, force: true };
  await succeed('POST', '/price', { url: operated.url, key: operated.adminKey, body: terms });
}

/** What the bill says in milliseconds of the SKU, once it is what the transitions say. */
async function untilBilledExactly(sku: string, teamId: string, key: string, intervals: { ms: string }[]): Promise<void> {
  const exactMs = intervals.reduce((sum, { ms }) => sum + Number(ms), 0);
  expect(exactMs).toBeGreaterThan(0);
  const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10);
  const path = `/team-billing/${teamId}/${day(-1)}T00:00:00/${day(2)}T00:00:00/daily/utc`;
  const billedMs = async () => {
    const bill = await succeed<{ intervals: { items: { sku: string; cost: string }[] }[] }>('GET', path, { url: operated.url, key });
    const items = bill.intervals.flatMap((interval) => interval.items).filter((item) => item.sku === sku);
    return items.reduce((sum, { cost }) => sum + Math.round(Number(cost) * 1e6), 0) / 1_000;
  };
  expect(await until(billedMs, (ms) => ms === exactMs)).toBe(exactMs);
}

/** From each entry of a billed state until it was left. */
const intervalsQuery = (schema: string, states: string) => `
  SELECT extract(epoch FROM left_at - at) * 1000 AS ms FROM (
    SELECT at, to_state, lead(at) OVER (PARTITION BY instance ORDER BY id) AS left_at
    FROM ${schema}.machine_history WHERE machine = $1 AND instance = ANY ($2)) passage
  WHERE to_state IN (${states})`;

it.each(victims)(
  'a pod starts and ends as it was to, whoever dies in the middle (%s): nobody else notices, and no lease is left',
  async (victim) => {
    await mortal.start();
    const { node, tenant, subscription_id, ...team } = await subscriber();
    await priceBySecond('pod', 'pod', tenant.teamId);
    const other = await team.create('other');
    await team.runs(other.pod_name);

    const start = await hang(node.gpuaasId, 'start');
    const pod = await team.create('job');
    await start.untilItDoes();
    await mortal.kill(victim);
    await team.runs(pod.pod_name);
    await team.holds([pod, other]);
    expect((await team.runs(other.pod_name)).body.restarts).toBe(0);

    const stop = await hang(node.gpuaasId, 'stop');
    await team.remove(pod.pod_name);
    await stop.untilItDoes();
    await mortal.kill(victim);
    await team.gone(pod.pod_name);
    await team.holds([other]);
    await team.remove(other.pod_name);
    await team.gone(other.pod_name);
    await team.holds([]);

    await tenant.unsubscribe(subscription_id);
    await tenant.subscribed(subscription_id, 'unsubscribed', recoveryMs);
    expect(await team.free()).toBe(4);
    expect((await node.read()).gpus.flatMap(({ slices, tenants }) => [...slices, ...tenants])).toEqual([]);
    expect(await mortal.query('SELECT FROM simulated_cluster.run WHERE ends_at IS NULL OR ends_at > clock_timestamp()')).toEqual([]);
    const intervals = await mortal.query<{ ms: string }>(intervalsQuery('pods', `'running'`), ['pod', [pod.pod_id, other.pod_id]]);
    expect(intervals).toHaveLength(2);
    await untilBilledExactly('pod', tenant.teamId, tenant.keys.billing_viewer ?? '', intervals);
  },
  storyMs,
);

it(
  'a service is exposed and deleted as it was to, though pods dies in the middle, and no port is left',
  async () => {
    await mortal.start();
    const { node, ...team } = await subscriber();
    const pod = await team.create('web');
    await team.runs(pod.pod_name);

    const opening = await hang(node.gpuaasId, 'door');
    const { service_id } = await team.expose(pod.pod_name);
    await opening.untilItDoes();
    await mortal.kill('pods');
    const { body: service } = await until(
      () => team.service(service_id),
      ({ body }) => body.status === 'active',
      recoveryMs,
    );
    expect(await (await fetch(service.url)).text()).toBe(`${pod.pod_name}\n`);

    const closing = await hang(node.gpuaasId, 'stop');
    await team.unexpose(service_id);
    await closing.untilItDoes();
    await mortal.kill('pods');
    await until(
      () => team.service(service_id),
      ({ status }) => status === 404,
      recoveryMs,
    );
    await until(
      () => fetch(service.url).catch(() => null),
      (answer) => answer === null,
    );
    expect(await mortal.query('SELECT FROM pods.reserved_port')).toEqual([]);
    expect(await mortal.query('SELECT FROM simulated_cluster.door')).toEqual([]);
    expect((await team.runs(pod.pod_name)).body.restarts).toBe(0);
  },
  storyMs,
);

it(
  'a bare-metal host is provisioned and released as it was to, though gpuaas dies in the middle, and keeps no user',
  async () => {
    await mortal.start();
    const access = () => ({ url: operated.url, key: operated.adminKey });
    const { region_id } = await succeed<{ region_id: string }>('POST', '/region', { ...access(), body: { region_name: fresh('region') } });
    const { team, keys } = await createTeam('Metal', ['team_owner', 'billing_viewer'], operated);
    const model = fresh('model').slice(0, 60);
    const host = {
      ...{ name: 'metal-01.user-slow.revoke-slow', region_id, host: 'metal-01.example', driver: 'simulated' },
      credential: { password: 'operator' },
      specs: { gpu_model: model, gpu_count: 8, cpu_cores: 128, memory_gb: 1024 },
    };
    const { node_id } = await succeed<{ node_id: string }>('POST', '/baremetal/node', { ...access(), body: host });
    const node = (status: string) =>
      until(
        () => succeed<{ status: string; instance_id: string | null }>('GET', `/baremetal/node/${node_id}`, access()),
        (found) => found.status === status,
        recoveryMs,
      );
    await node('Available');
    const sku = `baremetal.${model}-x8`;
    await priceBySecond(sku, 'host', team.id);

    const ours = () => ({ url: operated.url, key: keys.team_owner ?? '' });
    const asked = { team_id: team.id, region_id, name: 'training', specs: { gpu_model: model } };
    const { instance_id } = await succeed<{ instance_id: string }>('POST', '/baremetal/request', { ...ours(), body: asked });
    const instance = (status: string) =>
      until(
        () => succeed<{ status: string }>('GET', `/baremetal/${instance_id}`, ours()),
        (found) => found.status === status,
        recoveryMs,
      );
    await instance('Provisioning');
    await mortal.kill('gpuaas');
    await instance('Active');
    await succeed('DELETE', `/baremetal/${instance_id}`, ours());
    await instance('Releasing');
    await mortal.kill('gpuaas');
    await instance('Released');
    expect((await node('Available')).instance_id).toBeNull();
    expect(await mortal.query('SELECT users FROM gpuaas.simulated_host')).toEqual([{ users: {} }]);
    const intervals = await mortal.query<{ ms: string }>(intervalsQuery('gpuaas', `'active'`), ['baremetal_instance', [instance_id]]);
    expect(intervals).toHaveLength(1);
    await untilBilledExactly(sku, team.id, keys.billing_viewer ?? '', intervals);
  },
  storyMs,
);

it(
  'everything comes back and goes on where all processes are killed at once, PostgreSQL too',
  async () => {
    own.folder = mkdtempSync(join(tmpdir(), 'atoll-e2e-'));
    const env = { ATOLL_DATA_DIR: own.folder, ATOLL_ADMIN_KEY: createApiKey() };
    let platform = await own.start(mortal.topology, env);
    const place = {
      get url() {
        return platform.url;
      },
      adminKey: env.ATOLL_ADMIN_KEY,
    };
    const team = await subscriber(place);
    const web = await team.create('web');
    await team.runs(web.pod_name);
    const { service_id } = await team.expose(web.pod_name);
    const pods = [web, await team.create('one'), await team.create('two')];
    await killEverything(platform);

    const startMs = performance.now();
    platform = await own.start(mortal.topology, env);
    const readyMs = performance.now() - startMs;
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
    const doneMs = performance.now() - startMs;
    process.stdout.write(`Killed at once: ready after ${Math.round(readyMs)} ms, all work done after ${Math.round(doneMs)} ms.\n`);
    await team.holds(pods);
    for (const { pod_name } of pods) expect((await team.runs(pod_name)).body.restarts).toBe(0);
  },
  storyMs,
);
