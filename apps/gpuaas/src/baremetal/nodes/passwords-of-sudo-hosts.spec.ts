import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { baremetalNodes, type BaremetalNode } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { generateKeyPair } from '@atoll/ssh';
import ssh2 from 'ssh2';
import { DataSource } from 'typeorm';
import type { ToldTeam } from '../../gpuaas-fixture.js';
import { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';
import { BaremetalFixture } from '../baremetal-fixture.js';
import { HostAccess } from '../hosts/host-access.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
/** How the platform has tried to log in to the host, and the passwords that it has sent. */
let methods: Set<string>;
let passwords: string[];
let server: ssh2.Server;
beforeAll(async () => {
  fixture = await BaremetalFixture.start({ hostRetries: 0 });
  team = await fixture.team();
  [methods, passwords] = [new Set(), []];
  server = new ssh2.Server({ hostKeys: [generateKeyPair().privateKey] }, (client) => {
    client
      .on('error', () => undefined)
      .on('authentication', (attempt) => {
        methods.add(attempt.method);
        if (attempt.method === 'password') passwords.push(attempt.password);
        if (attempt.method === 'none') attempt.reject(['publickey', 'password']);
        else attempt.accept();
      });
    client.on('session', (accept) =>
      accept().on('exec', (acceptExec) => {
        const channel = acceptExec();
        channel.resume();
        channel.write('atoll-ready\n');
        channel.exit(0);
        channel.end();
      }),
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterAll(async () => {
  server.close();
  await fixture.stop();
});

/** A node with a password whose tenants get sudo, as an earlier release registered it. Its host is the server. */
async function older(makeBusy: (node: BaremetalNode) => Promise<unknown> = () => Promise.resolve()) {
  const specs = { gpu_model: `sudo-${newId().slice(-8)}`, gpu_count: 8, cpu_cores: 64, memory_gb: 512 };
  const node = await fixture.available('', { specs });
  await makeBusy(node);
  await fixture.gpuaas.query(
    `UPDATE baremetal_node SET tenant_sudo = true, driver = 'ssh', host = '127.0.0.1', port = $2, host_key = NULL WHERE node_id = $1`,
    [node.node_id, (server.address() as AddressInfo).port],
  );
  return node;
}
const request = ({ specs }: BaremetalNode) => fixture.settled(team, { specs: { gpu_model: specs.gpu_model ?? '' } });
const look = async () => {
  await fixture.pass(61);
  await fixture.work();
};
const remove = ({ node_id }: BaremetalNode) =>
  fixture.gpuaas.query(
    `UPDATE baremetal_node SET state = 'removed', due_at = NULL, parked_until = NULL WHERE node_id = $1`,
    [node_id],
  );
const said = 'Atoll sends no password to a host whose tenants get sudo. Set a private_key as its credential.';

it('a node of an earlier release, whose tenants get sudo, is sent no password; it gets no tenant until it has a key', async () => {
  const node = await older();
  // Away since before the upgrade, too.
  await fixture.gpuaas.query(
    `UPDATE baremetal_node SET unreachable_since = now(), unreachable_reason = 'It was away.' WHERE node_id = $1`,
    [node.node_id],
  );
  await look();
  expect([passwords, await fixture.node(node.node_id)]).toMatchObject([
    [],
    { status: 'Available', reason: said, unreachable_since: expect.any(String) },
  ]);
  expect((await request(node)).status).toBe('Requested');
  await fixture.gpuaas.call(baremetalNodes.check, { node_id: node.node_id });
  await fixture.settle();
  expect([passwords, await fixture.node(node.node_id)]).toMatchObject([[], { status: 'Check failed', reason: said }]);
  await remove(node);
});

it('such a node is given to nobody before the first look at it either; the request waits, or gets another node', async () => {
  const node = await older();
  const { gpu_model, gpu_count, cpu_cores, memory_gb } = node.specs;
  const state = async () => [
    passwords,
    await fixture.gpuaas.query('SELECT failures, unreachable_reason AS reason FROM baremetal_node WHERE node_id = $1', [
      node.node_id,
    ]),
  ];
  /** As a replica of the earlier release does, which reaches the host by the password. */
  const clear = () =>
    fixture.gpuaas.query(
      'UPDATE baremetal_node SET unreachable_since = NULL, unreachable_reason = NULL WHERE node_id = $1',
      [node.node_id],
    );
  const refused = [[], [{ failures: 0, reason: said }]];
  const instance = await request(node);
  expect([instance.status, await state()]).toEqual(['Requested', refused]);
  await clear();
  await fixture.sweep();
  await fixture.settle();
  expect([(await fixture.instance(team, instance)).status, await state()]).toEqual(['Requested', refused]);
  await clear();
  const specs = { gpu_model: gpu_model ?? '', gpu_count, cpu_cores, memory_gb };
  const other = await fixture.register({ specs });
  await fixture.settle();
  expect([(await fixture.node(other.node_id)).instance_id, await state()]).toEqual([instance.instance_id, refused]);
  await remove(node);
});

it('a node whose credential cannot be opened is not taken for one of these, and undoes no transaction that picks a node', async () => {
  const node = await older();
  await fixture.gpuaas.query(`UPDATE baremetal_node SET credential = 'damaged' WHERE node_id = $1`, [node.node_id]);
  const row = await fixture.gpuaas
    .get(DataSource)
    .manager.findOneByOrFail(BaremetalNodeEntity, { nodeId: node.node_id });
  expect(fixture.gpuaas.get(HostAccess).lacksKey(row)).toBe(false);
  expect(() => fixture.gpuaas.get(HostAccess).hostOf(row)).toThrow();
  await remove(node);
});

it('while a tenant is on such a node, it is looked at again as soon as it has a key', async () => {
  let instance = { instance_id: '' };
  const node = await older(async (busy) => (instance = await request(busy)));
  await look();
  expect([passwords, await fixture.node(node.node_id)]).toMatchObject([[], { status: 'In service', reason: said }]);
  // It may well be reachable.
  expect(await fixture.instance(team, instance)).toMatchObject({ status: 'Active', unreachable_since: null });
  const credential = { private_key: generateKeyPair().privateKey };
  await fixture.gpuaas.call(baremetalNodes.update, { node_id: node.node_id, credential });
  await fixture.work();
  expect(await fixture.node(node.node_id)).toMatchObject({ reason: null, unreachable_since: null });
  expect([passwords, methods.has('publickey')]).toEqual([[], true]);
  await remove(node);
});

it('the release of such a node ends, and its host waits for a reinstall', async () => {
  let instance = { instance_id: '' };
  const node = await older(async (busy) => (instance = await request(busy)));
  await fixture.end(team, instance);
  await fixture.settle();
  expect((await fixture.instance(team, instance)).status).toBe('Released');
  expect([passwords, await fixture.node(node.node_id)]).toMatchObject([
    [],
    { status: 'Clean failed', maintenance: true, reason: expect.stringMatching(/^The last tenant had root/) },
  ]);
});
