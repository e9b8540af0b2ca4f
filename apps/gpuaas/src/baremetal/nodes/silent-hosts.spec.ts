import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import type { BaremetalNode } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { generateKeyPair } from '@atoll/ssh';
import { timeoutFactor } from '@atoll/testing';
import type { FairSemaphore } from '@atoll/waiting';
import ssh2 from 'ssh2';
import type { ToldTeam } from '../../gpuaas-fixture.js';
import type { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';
import { BaremetalFixture } from '../baremetal-fixture.js';
import { BaremetalNodeSteps } from './baremetal-node-steps.js';
import { HostAccess } from '../hosts/host-access.js';
import { SimulatedHosts } from '../hosts/simulated-hosts.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
const stops: (() => void)[] = [];
beforeAll(async () => {
  fixture = await BaremetalFixture.start({
    hostStepSeconds: timeoutFactor,
    hostConnectMs: 200,
    hostRetries: 0,
    sshConnections: 1,
  });
  team = await fixture.team();
});
afterEach(async () => {
  stops.splice(0).forEach((stop) => stop());
  // Nobody looks at them any more.
  await fixture.gpuaas.query(
    `UPDATE baremetal_node SET state = 'removed', due_at = NULL, parked_until = NULL, deadline_at = NULL`,
  );
});
afterAll(() => fixture.stop());

/** Takes connections, and says nothing. */
async function silentPort(): Promise<number> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket.on('error', () => undefined)));
  stops.push(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

/** Takes the log-in, and does nothing with a command. */
async function hangingPort(): Promise<number> {
  const server = new ssh2.Server({ hostKeys: [generateKeyPair().privateKey] }, (client) => {
    stops.push(() => client.end());
    client.on('error', () => undefined).on('authentication', (attempt) => attempt.accept());
    client.on('session', (accept) => accept().on('exec', (acceptExec) => void acceptExec().resume()));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stops.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

const some = () => ({
  specs: { gpu_model: `silent-${newId().slice(-8)}`, gpu_count: 8, cpu_cores: 64, memory_gb: 512 },
});
const rename = ({ node_id }: BaremetalNode, faults: string) =>
  fixture.gpuaas.query('UPDATE baremetal_node SET name = $2 WHERE node_id = $1', [
    node_id,
    `metal-${newId()}.${faults}`,
  ]);

/** A node that was checked, and whose host is from now on what listens on this port. */
async function onPort(port: number): Promise<BaremetalNode> {
  const node = await fixture.available('', some());
  await fixture.gpuaas.query(
    `UPDATE baremetal_node SET driver = 'ssh', host = '127.0.0.1', port = $2, host_key = NULL WHERE node_id = $1`,
    [node.node_id, port],
  );
  return node;
}

async function rowOf({ node_id }: BaremetalNode): Promise<BaremetalNodeEntity> {
  const [raw] = await fixture.gpuaas.query<object>('SELECT * FROM baremetal_node WHERE node_id = $1', [node_id]);
  return fixture.gpuaas.get(BaremetalNodeSteps).rowOf(raw ?? {});
}

const look = async (): Promise<void> => {
  await fixture.pass(61);
  await fixture.work();
};

it.each([
  ['takes connections and says nothing', async () => onPort(await silentPort())],
  ['takes the log-in and then says nothing', async () => onPort(await hangingPort())],
])('a host that %s is unreachable after one look, and given to nobody', async (_, start) => {
  const node = await start();
  await look();
  expect(await fixture.node(node.node_id)).toMatchObject({
    status: 'Available',
    unreachable_since: expect.any(String),
    reason: 'The host did not answer in time.',
  });
  const waiting = await fixture.request(team, { specs: { gpu_model: node.specs.gpu_model ?? '' } });
  await fixture.work();
  expect((await fixture.instance(team, waiting)).status).toBe('Requested');
  await fixture.end(team, waiting);
});

it('a driver that gives no answer at all is taken for an unreachable host', async () => {
  const node = await fixture.available('', some());
  await rename(node, 'reach-hang');
  await look();
  expect((await fixture.node(node.node_id)).reason).toBe('The host did not answer in time.');
  expect((await fixture.node(node.node_id)).unreachable_since).not.toBeNull();
});

it('a host that hangs while it is cleaned is tried again by its age, as one that refuses', async () => {
  const node = await fixture.available('', some());
  const instance = await fixture.settled(team, { specs: { gpu_model: node.specs.gpu_model ?? '' } });
  await rename(node, 'revoke-hang');
  await fixture.end(team, instance);
  await fixture.settle();
  expect((await fixture.node(node.node_id)).status).toBe('Clean failed');
  await fixture.pass(6);
  await fixture.work();
  const { attempts } = await fixture.instance(team, instance);
  expect(attempts.at(-1)).toMatchObject({
    action: 'clean',
    outcome: 'failed',
    reason: 'The host did not answer in time.',
  });
  expect(await rowOf(node)).toMatchObject({ attempts: 0, lastError: { code: 'host_timeout' } });
  await rename(node, '');
  await fixture.pass(601);
  await fixture.work();
  expect((await fixture.node(node.node_id)).status).toBe('Available');
});

it('a host that stays away is looked at ever more seldom, up to five minutes apart, and every minute once it is back', async () => {
  const node = await fixture.available('', some());
  const hosts = fixture.gpuaas.get(SimulatedHosts);
  const look = jest.spyOn(hosts, 'look');
  /** How often it is looked at in so many minutes. */
  const looksIn = async (minutes: number) => {
    const before = look.mock.calls.length;
    for (let minute = 0; minute < minutes; minute += 1) {
      await fixture.pass(60);
      await fixture.gpuaas.query(
        `UPDATE baremetal_node SET unreachable_since = unreachable_since - interval '1 minute' WHERE node_id = $1`,
        [node.node_id],
      );
      await fixture.work();
    }
    return look.mock.calls.length - before;
  };
  expect(await looksIn(10)).toBe(10);
  await rename(node, 'reach-refuse');
  const [early, late] = [await looksIn(10), await looksIn(50)];
  expect(early).toBeLessThan(8);
  expect(late).toBeGreaterThanOrEqual(10);
  expect(late).toBeLessThan(14);
  await rename(node, '');
  await looksIn(5);
  expect((await fixture.node(node.node_id)).unreachable_since).toBeNull();
  expect(await looksIn(10)).toBe(10);
});

it('a check that hung is made again after five minutes', async () => {
  const node = await fixture.register({ name: `metal-${newId()}.inspect-hang`, ...some() });
  await fixture.settle();
  expect((await fixture.node(node.node_id)).status).toBe('Check failed');
  await rename(node, '');
  await fixture.pass(301);
  await fixture.settle();
  expect((await fixture.node(node.node_id)).status).toBe('Available');
});

it('a host that waits for a connection of the platform is neither unreachable nor tried', async () => {
  const [hanging, node] = [await onPort(await hangingPort()), await onPort(await silentPort())];
  const access = fixture.gpuaas.get(HostAccess);
  const { connections } = access.driverOf(await rowOf(hanging)) as unknown as { connections: FairSemaphore };
  const release = await connections.acquire({ key: 'another host' });
  const asked = await fixture.request(team, { specs: { gpu_model: node.specs.gpu_model ?? '' } });
  await fixture.workOnce();
  await fixture.pass(61);
  // The nodes go first.
  while ((await fixture.instance(team, asked)).reason === null) await fixture.workOnce();
  expect(await fixture.node(hanging.node_id)).toMatchObject({ unreachable_since: null, reason: null });
  expect(await fixture.instance(team, asked)).toMatchObject({
    status: 'Provisioning',
    attempts: [],
    reason: 'All SSH connections of Atoll are in use.',
  });
  const tries = await fixture.gpuaas.query('SELECT attempts FROM baremetal_instance WHERE instance_id = $1', [
    asked.instance_id,
  ]);
  expect(tries).toEqual([{ attempts: 0 }]);
  release();
  await look();
  expect((await fixture.node(hanging.node_id)).unreachable_since).not.toBeNull();
});
