import { expect } from '@jest/globals';
import { generateKeyPair } from '@atoll/ssh';
import { createTeam, fresh, succeed, until } from './client.js';
import { createNode } from './gpu-inventory.js';
import type { Dies, MortalPlatform } from './mortal-platform.js';
import { recoveryMs, subscriber } from './subscriber.js';

/** The next call of this kind to the cluster hangs until its caller gives up, or dies. */
async function hang(
  mortal: MortalPlatform,
  gpuaasId: string,
  operation: 'start' | 'stop' | 'door',
): Promise<{ untilItDoes: () => Promise<unknown> }> {
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

/** One unit for a second. */
async function priceBySecond({ operated }: MortalPlatform, sku: string, unit: string, team_id: string): Promise<void> {
  const terms = { sku, unit, unit_price: '3600', valid_from: '2026-01-01T00:00:00Z', team_id, force: true };
  await succeed('POST', '/price', { url: operated.url, key: operated.adminKey, body: terms });
}

/** What the bill says in milliseconds of the SKU, once it is what the transitions say. */
async function untilBilledExactly(
  { operated }: MortalPlatform,
  sku: string,
  teamId: string,
  key: string,
  intervals: { ms: string }[],
): Promise<void> {
  const exactMs = intervals.reduce((sum, { ms }) => sum + Number(ms), 0);
  expect(exactMs).toBeGreaterThan(0);
  const day = (offset: number) => new Date(Date.now() + offset * 86_400_000).toISOString().slice(0, 10);
  const path = `/team-billing/${teamId}/${day(-1)}T00:00:00/${day(2)}T00:00:00/daily/utc`;
  const billedMs = async () => {
    const bill = await succeed<{ intervals: { items: { sku: string; cost: string }[] }[] }>('GET', path, {
      url: operated.url,
      key,
    });
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

/** A pod starts and ends as it was to: nobody else notices, and no lease is left. */
export async function aPod(mortal: MortalPlatform, dies: Dies): Promise<void> {
  const { operated } = mortal;
  const { node, tenant, subscription_id, ...team } = await subscriber(operated);
  await priceBySecond(mortal, 'pod', 'pod', tenant.teamId);
  const other = await team.create('other');
  await team.runs(other.pod_name);

  const pod = await dies('hangs', async () => {
    const start = await hang(mortal, node.gpuaasId, 'start');
    const created = await team.create('job');
    await start.untilItDoes();
    return created;
  });
  await team.runs(pod.pod_name);
  await team.holds([pod, other]);
  expect((await team.runs(other.pod_name)).body.restarts).toBe(0);

  await dies('hangs', async () => {
    const stop = await hang(mortal, node.gpuaasId, 'stop');
    await team.remove(pod.pod_name);
    await stop.untilItDoes();
  });
  await team.gone(pod.pod_name);
  await team.holds([other]);
  await team.remove(other.pod_name);
  await team.gone(other.pod_name);
  await team.holds([]);

  await tenant.unsubscribe(subscription_id);
  await tenant.subscribed(subscription_id, 'unsubscribed', recoveryMs);
  expect(await team.free()).toBe(4);
  expect((await node.read()).gpus.flatMap(({ slices, tenants }) => [...slices, ...tenants])).toEqual([]);
  const left =
    'SELECT FROM simulated_cluster.run WHERE cluster = $1 AND (ends_at IS NULL OR ends_at > clock_timestamp())';
  expect(await mortal.query(left, [`gpuaas-${node.gpuaasId}`])).toEqual([]);
  const intervals = await mortal.query<{ ms: string }>(intervalsQuery('pods', `'running'`), [
    'pod',
    [pod.pod_id, other.pod_id],
  ]);
  expect(intervals).toHaveLength(2);
  await untilBilledExactly(mortal, 'pod', tenant.teamId, tenant.keys.billing_viewer ?? '', intervals);
}

/** A service is exposed and deleted as it was to, and no port is left. */
export async function anExposedService(mortal: MortalPlatform, dies: Dies): Promise<void> {
  const { operated } = mortal;
  const { node, ...team } = await subscriber(operated);
  const pod = await team.create('web');
  await team.runs(pod.pod_name);

  const { service_id } = await dies('hangs', async () => {
    const opening = await hang(mortal, node.gpuaasId, 'door');
    const exposed = await team.expose(pod.pod_name);
    await opening.untilItDoes();
    return exposed;
  });
  const { body: service } = await until(
    () => team.service(service_id),
    ({ body }) => body.status === 'active',
    recoveryMs,
  );
  expect(await (await fetch(service.url)).text()).toBe(`${pod.pod_name}\n`);

  await dies('hangs', async () => {
    const closing = await hang(mortal, node.gpuaasId, 'stop');
    await team.unexpose(service_id);
    await closing.untilItDoes();
  });
  await until(
    () => team.service(service_id),
    ({ status }) => status === 404,
    recoveryMs,
  );
  await until(
    () => fetch(service.url).catch(() => null),
    (answer) => answer === null,
  );
  expect(await mortal.query('SELECT FROM pods.reserved_port WHERE service_id IS NOT NULL')).toEqual([]);
  expect(await mortal.query('SELECT FROM simulated_cluster.door')).toEqual([]);
  expect((await team.runs(pod.pod_name)).body.restarts).toBe(0);
}

/** A host that nobody has, of a model of its own. */
async function freeHost({ operated }: MortalPlatform) {
  const access = () => ({ url: operated.url, key: operated.adminKey });
  const { region_id } = await succeed<{ region_id: string }>('POST', '/region', {
    ...access(),
    body: { region_name: fresh('region') },
  });
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
  return { region_id, model, node };
}

/** A bare-metal host is provisioned and released as it was to, and keeps no user. */
export async function aHost(mortal: MortalPlatform, dies: Dies): Promise<void> {
  const { region_id, model, node } = await freeHost(mortal);
  const { team, keys } = await createTeam('Metal', ['team_owner', 'billing_viewer'], mortal.operated);
  const sku = `baremetal.${model}-x8`;
  await priceBySecond(mortal, sku, 'host', team.id);

  const ours = () => ({ url: mortal.operated.url, key: keys.team_owner ?? '' });
  const instanceIs = (instance_id: string, isAsItShould: (status: string) => boolean) =>
    until(
      () => succeed<{ status: string }>('GET', `/baremetal/${instance_id}`, ours()),
      (found) => isAsItShould(found.status),
      recoveryMs,
    );
  const instance = (instance_id: string, wanted: string) => instanceIs(instance_id, (status) => status === wanted);
  const instance_id = await dies('passes', async () => {
    const asked = { team_id: team.id, region_id, name: 'training', specs: { gpu_model: model } };
    const requested = await succeed<{ instance_id: string }>('POST', '/baremetal/request', { ...ours(), body: asked });
    await instanceIs(requested.instance_id, (status) => status !== 'Requested');
    return requested.instance_id;
  });
  await instance(instance_id, 'Active');
  await dies('passes', async () => {
    await succeed('DELETE', `/baremetal/${instance_id}`, ours());
    await instanceIs(instance_id, (status) => status !== 'Active');
  });
  await instance(instance_id, 'Released');
  expect((await node('Available')).instance_id).toBeNull();
  expect(await mortal.query('SELECT users FROM gpuaas.simulated_host')).toEqual([{ users: {} }]);
  const intervals = await mortal.query<{ ms: string }>(intervalsQuery('gpuaas', `'active'`), [
    'baremetal_instance',
    [instance_id],
  ]);
  expect(intervals).toHaveLength(1);
  await untilBilledExactly(mortal, sku, team.id, keys.billing_viewer ?? '', intervals);
}

/** A VM lets in the SSH keys of the members whose role may use it, and is told of each change. */
export async function aVm(mortal: MortalPlatform, dies: Dies): Promise<void> {
  const access = (key = mortal.operated.adminKey) => ({ url: mortal.operated.url, key });
  const { regionId } = await createNode({ platform: mortal.operated });
  // The operator, who names no owner, is the owner.
  const { team, keys, ids } = await createTeam(fresh('Virtual'), ['member'], mortal.operated);
  await succeed('POST', '/vm/flavour', { ...access(), body: { name: 'small', vcpus: 4, memory_gb: 16 } });
  const addKey = async () => {
    const { publicKey: public_key } = generateKeyPair();
    return succeed<{ ssh_key_id: string; public_key: string }>('POST', '/user/ssh-key', {
      ...access(),
      body: { public_key },
    });
  };
  const first = await addKey();
  const { instance_id } = await succeed<{ instance_id: string }>('POST', '/vm', {
    ...access(keys.member),
    body: { team_id: team.id, region_id: regionId, name: 'head-node', flavour: 'small', image: 'debian:13' },
  });
  await until(
    () => succeed<{ status: string }>('GET', `/vm/${instance_id}`, access(keys.member)),
    ({ status }) => status === 'running',
    recoveryMs,
  );
  const letsIn = async () =>
    (
      await mortal.query<{ keys: string[] }>(
        `SELECT spec->'sshKeys' AS keys FROM simulated_cluster.run WHERE id = $1`,
        [instance_id],
      )
    )
      .flatMap((run) => run.keys)
      .toSorted();
  const comesTo = async (wanted: { public_key: string }[]) => {
    const lines = wanted.map(({ public_key }) => public_key.split(' ').slice(0, 2).join(' ')).toSorted();
    expect(await until(letsIn, (found) => found.join() === lines.join(), recoveryMs)).toEqual(lines);
  };
  await comesTo([first]);
  const second = await dies('passes', addKey);
  await comesTo([first, second]);
  await succeed('DELETE', `/user/ssh-key/${first.ssh_key_id}`, access());
  await comesTo([second]);
  await succeed('PUT', `/team/${team.id}/members/${ids.member}`, { ...access(), body: { role: 'team_owner' } });
  const { id } = await succeed<{ id: string }>('GET', '/user/profile', access());
  await dies('passes', () => succeed('DELETE', `/team/${team.id}/members/${id}`, access()));
  await comesTo([]);
}
