import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { baremetal, baremetalNodes, regions, type BaremetalChanged } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { memberOf, timeoutFactor } from '@atoll/testing';
import { errorOf, type ToldTeam } from '../../gpuaas-fixture.js';
import { BaremetalFixture } from '../baremetal-fixture.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());
const only = (node: { region_id: string; name: string }, gpu_model: string) => ({
  region_id: node.region_id,
  specs: { gpu_model },
});

/** A node of its own, so that requests of one spec do not meet those of another. */
async function alone(faults: string, model: string) {
  const node = await fixture.available(faults, {
    specs: { gpu_model: model, gpu_count: 4, cpu_cores: 64, memory_gb: 512 },
  });
  return { node, ask: only(node, model) };
}

describe('a request that a free node fits', () => {
  it('becomes Active, with a user, a password and keys on the host; billing learns it once', async () => {
    const { node, ask } = await alone('', 'A100-40GB');
    const instance = await fixture.settled(team, ask);
    expect(instance).toMatchObject({ status: 'Active', reason: null, error: null, host_specs: { gpu_count: 4 } });
    expect(instance.attempts.map(({ action, step, outcome }) => [action, step, outcome])).toEqual([
      ['provision', 'reach', 'succeeded'],
      ['provision', 'create_user', 'succeeded'],
      ['provision', 'place_keys', 'succeeded'],
      ['provision', 'set_password', 'succeeded'],
      ['provision', 'verify', 'succeeded'],
    ]);
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'In service', instance_id: instance.instance_id });
    const { username, ssh_password, host, port } = await fixture.credentials(team, instance);
    expect([host, port, ssh_password.length]).toEqual([node.host, 22, 24]);
    expect(await fixture.usersOf(node)).toMatchObject({ [username]: { password: ssh_password, keys: [] } });
    expect(await fixture.factsOf(instance)).toMatchObject([
      { sku: 'baremetal.a100-40gb-x4', quantity: '1', time: instance.active_since },
    ]);
  });

  it('is in the region of its node, for those who list instances too, whichever was asked for', async () => {
    const { node, ask } = await alone('', 'A10-24GB');
    const { instance_id } = await fixture.settled(team, { specs: ask.specs, region_id: undefined });
    const isIt = (one: BaremetalChanged) => one.instance_id === instance_id;
    const heard = await fixture.heard<BaremetalChanged>('gpuaas.baremetal_changed', (all) =>
      all.some((one) => isIt(one) && one.status === 'Active'),
    );
    const places = new Set(heard.filter(isIt).map(({ status, region_id }) => `${status} ${region_id}`));
    expect(places).toEqual(new Set(['Requested null', `Provisioning ${node.region_id}`, `Active ${node.region_id}`]));
  });

  it('is released: nothing is left on the host, the node is free again, and the bill ends with the release', async () => {
    const { node, ask } = await alone('', 'A100-80GB');
    const instance = await fixture.settled(team, ask);
    const released = await fixture.end(team, instance);
    expect(released.status).toBe('Releasing');
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Releasing' });
    await fixture.settle();
    expect(await fixture.instance(team, instance)).toMatchObject({ status: 'Released', error: null });
    expect(await fixture.node(node.node_id)).toMatchObject({
      status: 'Available',
      instance_id: null,
      maintenance: false,
    });
    expect(await fixture.usersOf(node)).toEqual({});
    // What an earlier release began under the model as it is written ends too.
    const facts = await fixture.factsOf(instance);
    expect(facts.map(({ sku, quantity }) => [sku, quantity])).toEqual([
      ['baremetal.a100-80gb-x4', '1'],
      ['baremetal.a100-80gb-x4', '0'],
      ['baremetal.A100-80GB-x4', '0'],
    ]);
    expect(new Set(facts.map(({ id }) => id)).size).toBe(3);
    expect((await errorOf(fixture.credentials(team, instance))).code).toBe('conflict');
    const secrets = await fixture.gpuaas.query(
      'SELECT password, proof_key FROM baremetal_instance WHERE instance_id = $1',
      [instance.instance_id],
    );
    expect(secrets).toEqual([{ password: null, proof_key: null }]);
    expect((await fixture.end(team, instance)).status).toBe('Released');
  });
});

describe('a host without GPUs', () => {
  const size = { cpu_cores: 32, memory_gb: 128 };
  const cpuNode = (faults = '') => fixture.available(faults, { specs: { gpu_count: 0, ...size } });

  it('is given to those who ask for none, and billed as such', async () => {
    const node = await cpuNode();
    expect(node.specs).toEqual({ gpu_model: null, gpu_count: 0, ...size });
    const instance = await fixture.settled(team, { specs: { cpu_cores: 32 } });
    expect(instance).toMatchObject({ status: 'Active', specs: { cpu_cores: 32 }, host_specs: node.specs });
    await fixture.end(team, instance);
    await fixture.settle();
    expect((await fixture.factsOf(instance)).map(({ sku, quantity }) => [sku, quantity])).toEqual([
      ['baremetal.cpu', '1'],
      ['baremetal.cpu', '0'],
    ]);
    await fixture.gpuaas.call(baremetalNodes.delete, { node_id: node.node_id });
  });

  it('is no match for those who ask for GPUs', async () => {
    const { region_id } = await fixture.gpuaas.call(regions.create, { region_name: `region-${newId()}` });
    await fixture.available('', { region_id, specs: { gpu_count: 0, ...size, cpu_cores: 1 } });
    const error = await errorOf(fixture.request(team, { region_id, specs: { gpu_model: 'B200-180GB', gpu_count: 1 } }));
    expect(error).toMatchObject({
      code: 'spec_mismatch',
      message:
        'No node could ever match. The nearest has no GPUs, 1 core and 128 GB; not met: gpu_model B200-180GB (it has no GPUs); gpu_count at least 1 (it has 0).',
    });
  });

  it('fails its check where it has one', async () => {
    const { node_id } = await fixture.register({ name: `metal-${newId()}.few-gpus`, specs: { gpu_count: 0, ...size } });
    await fixture.work();
    expect(await fixture.node(node_id)).toMatchObject({
      status: 'Check failed',
      differences: [{ field: 'gpu_count', declared: '0', found: '1' }],
    });
  });
});

it('is billed by the model as it is declared, with hyphens for what cannot stand in a SKU', async () => {
  const { ask } = await alone('', 'NVIDIA H100 80GB™');
  const instance = await fixture.settled(team, ask);
  await fixture.end(team, instance);
  await fixture.settle();
  expect((await fixture.factsOf(instance)).map(({ sku, quantity }) => [sku, quantity])).toEqual([
    ['baremetal.nvidia-h100-80gb--x4', '1'],
    ['baremetal.nvidia-h100-80gb--x4', '0'],
  ]);
});

/** Provisions on a node with this fault, which fails at the step. Returns how many tries of it there were. */
async function undone(fault: string, code: string, step: string): Promise<number> {
  const { node, ask } = await alone(fault, `M-${fault}`);
  const instance = await fixture.settled(team, ask);
  expect(instance).toMatchObject({ status: 'Failed', error: { code, step } });
  expect(instance.attempts.at(-1)?.action).toBe(step === 'reach' ? 'provision' : 'rollback');
  expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Available', instance_id: null });
  expect(await fixture.usersOf(node)).toEqual({});
  expect(await fixture.factsOf(instance)).toEqual([]);
  return instance.attempts.filter((attempt) => attempt.step === step).length;
}

describe('provisioning that fails', () => {
  it.each([
    ['reach-refuse', 'host_refused', 'reach', 4],
    ['reach-login', 'login_refused', 'reach', 1],
    ['user-fail', 'user_failed', 'create_user', 1],
    ['keys-refuse', 'host_refused', 'place_keys', 4],
    ['password-fail', 'password_failed', 'set_password', 1],
    ['password-lie', 'password_refused', 'verify', 4],
    ['user-drop', 'connection_lost', 'create_user', 4],
    ['verify-drop', 'connection_lost', 'verify', 4],
  ])(
    'by %s ends as Failed with its reason; the node is Available again, and nothing was billed',
    async (fault, code, step, tries) => {
      expect(await undone(fault, code, step)).toBe(tries);
    },
  );

  it('by a host that hangs does so too: each try is cut off', async () => {
    const others = [fixture, team] as const;
    fixture = await BaremetalFixture.start({ hostStepSeconds: timeoutFactor });
    try {
      team = await fixture.team();
      // A claim that runs out while the machine is frozen costs a try that does not count.
      expect(await undone('verify-hang', 'timeout', 'verify')).toBeGreaterThanOrEqual(4);
    } finally {
      await fixture.stop();
      [fixture, team] = others;
    }
  });

  it('and cannot be undone ends as Failed all the same; the node is in maintenance and cleaned in the background', async () => {
    const { node, ask } = await alone('verify-fail.revoke-refuse', 'M-unclean');
    const instance = await fixture.settled(team, ask);
    expect(instance).toMatchObject({ status: 'Failed', error: { code: 'verify_failed', step: 'verify' } });
    expect(await fixture.node(node.node_id)).toMatchObject({
      status: 'Clean failed',
      maintenance: true,
      instance_id: instance.instance_id,
    });
    expect(Object.keys(await fixture.usersOf(node))).toHaveLength(1);
    await fixture.gpuaas.query(`UPDATE baremetal_node SET name = 'mended' WHERE node_id = $1`, [node.node_id]);
    await fixture.pass(600);
    await fixture.work();
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Available', maintenance: false, reason: null });
    expect(await fixture.usersOf(node)).toEqual({});
  });
});

it('a host that holds a tenant whom the database has forgotten fails one request: it gets no other until it was looked at', async () => {
  const { node, ask } = await alone('forgotten', 'M-forgotten');
  await fixture.gpuaas.query(
    `INSERT INTO simulated_host (node_id, users) VALUES ($1, $2)
     ON CONFLICT (node_id) DO UPDATE SET users = excluded.users`,
    [node.node_id, { 'atl-0123456789': { password: null, keys: [], instanceId: newId(), sudo: false } }],
  );
  expect(await fixture.settled(team, ask)).toMatchObject({ status: 'Failed', error: { code: 'host_in_use' } });
  const reason = expect.stringContaining('Check the node');
  expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Available', maintenance: true, reason });
});

describe('a request that is cancelled', () => {
  it('while it waits holds nothing', async () => {
    const { ask } = await alone('', 'M-cancel-a');
    await fixture.settled(team, ask);
    const waiting = await fixture.settled(team, ask);
    expect(waiting).toMatchObject({ status: 'Requested', reason: 'The only matching node is not free.' });
    expect((await fixture.end(team, waiting)).status).toBe('Cancelled');
  });

  it('while it is provisioned is undone', async () => {
    const { node, ask } = await alone('', 'M-cancel-b');
    const instance = await fixture.request(team, ask);
    await fixture.reach(instance, 'setting_password');
    expect((await fixture.end(team, instance)).status).toBe('Releasing');
    await fixture.settle();
    expect((await fixture.instance(team, instance)).status).toBe('Cancelled');
    expect([await fixture.usersOf(node), (await fixture.node(node.node_id)).status]).toEqual([{}, 'Available']);
  });
});

describe('an instance', () => {
  it('is nobody’s but its team’s; its credentials are not for viewers', async () => {
    const { ask } = await alone('', 'M-tenants');
    const instance = await fixture.settled(team, ask);
    const { instance_id } = instance;
    const other = await fixture.team();
    for (const operation of [baremetal.get, baremetal.end, baremetal.credentials] as (typeof baremetal.get)[]) {
      expect((await errorOf(fixture.gpuaas.call(operation, { instance_id }, other.member))).code).toBe('not_found');
    }
    expect((await errorOf(fixture.gpuaas.call(baremetal.list, { team_id: team.team_id }, other.member))).code).toBe(
      'not_found',
    );
    const viewer = memberOf(team.team_id, 'viewer');
    expect((await errorOf(fixture.gpuaas.call(baremetal.credentials, { instance_id }, viewer))).code).toBe('forbidden');
    expect((await fixture.gpuaas.call(baremetal.get, { instance_id }, viewer)).status).toBe('Active');
    await fixture.credentials(team, instance);
    expect(
      await fixture.gpuaas.query('SELECT actor FROM baremetal_credential_read WHERE instance_id = $1', [instance_id]),
    ).toEqual([{ actor: expect.stringMatching(/^user:/) }]);
  });
});
