import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { newId } from '@atoll/database';
import { StepFailed } from '@atoll/state-machine';
import type { ToldTeam } from '../gpuaas-fixture.js';
import { BaremetalFixture } from './baremetal-fixture.js';
import type { HostDriver } from './hosts/host-driver.js';
import { SimulatedHosts } from './hosts/simulated-hosts.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
  team = await fixture.team();
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(() => fixture.stop());

type HostOperation = Exclude<keyof HostDriver, 'inspect'>;
const operations = [
  'reach',
  'createUser',
  'placeKeys',
  'setPassword',
  'verify',
  'revoke',
] as const satisfies HostOperation[];
const moments = ['before the host was asked', 'after the host has done it'] as const;

/**
 * The worker dies at this call of a host, the first one of its kind: what it would have written is lost, and another
 * takes over.
 */
function crashAt(operation: HostOperation, moment: (typeof moments)[number]): { hasCrashed(): boolean } {
  let crashes = 0;
  const hosts = fixture.gpuaas.get(SimulatedHosts);
  const original = hosts[operation].bind(hosts) as (...inputs: unknown[]) => Promise<void>;
  jest.spyOn(hosts, operation as 'createUser').mockImplementation(async (...inputs: unknown[]) => {
    if (crashes > 0) return original(...inputs);
    crashes += 1;
    if (moment === 'after the host has done it') await original(...inputs);
    await fixture.gpuaas.query(
      `UPDATE baremetal_instance SET claim_token = gen_random_uuid(), claimed_until = clock_timestamp() WHERE claim_token IS NOT NULL`,
    );
  });
  return { hasCrashed: () => crashes > 0 };
}

/**
 * Host and database agree: whoever may log in is an active instance of the database, with the password that it knows.
 */
async function expectAgreement(node: { node_id: string }, instance: { instance_id: string }): Promise<void> {
  const [users, { status }] = [await fixture.usersOf(node), await fixture.instance(team, instance)];
  const { status: nodeStatus } = await fixture.node(node.node_id);
  if (status === 'Active') {
    const { username, ssh_password: password } = await fixture.credentials(team, instance);
    expect(users).toEqual({ [username]: expect.objectContaining({ password, keys: [] }) });
    expect(nodeStatus).toBe('In service');
    return;
  }
  expect([users, nodeStatus]).toEqual([{}, 'Available']);
  const secrets = await fixture.gpuaas.query(
    'SELECT password, proof_key FROM baremetal_instance WHERE instance_id = $1',
    [instance.instance_id],
  );
  expect(secrets).toEqual([{ password: null, proof_key: null }]);
}

async function begun(faults: string) {
  const model = `model-${newId().slice(-8)}`;
  const node = await fixture.available(faults, {
    specs: { gpu_model: model, gpu_count: 4, cpu_cores: 64, memory_gb: 512 },
  });
  return { node, instance: await fixture.request(team, { specs: { gpu_model: model } }) };
}

describe.each(moments)('a worker that dies %s', (moment) => {
  it.each(operations.filter((operation) => operation !== 'revoke'))(
    'in provisioning, at %s, is replaced: the instance becomes Active',
    async (operation) => {
      const { node, instance } = await begun('');
      const crash = crashAt(operation, moment);
      await fixture.settle();
      expect([crash.hasCrashed(), (await fixture.instance(team, instance)).status]).toEqual([true, 'Active']);
      await expectAgreement(node, instance);
      expect((await fixture.factsOf(instance)).map(({ quantity }) => quantity)).toEqual(['1']);
    },
  );

  it.each(['keys-fail', 'password-lie', 'verify-fail'])(
    'in the rollback of %s is replaced: Failed, and the node Available',
    async (fault) => {
      const { node, instance } = await begun(fault);
      const crash = crashAt('revoke', moment);
      await fixture.settle();
      expect([crash.hasCrashed(), (await fixture.instance(team, instance)).status]).toEqual([true, 'Failed']);
      await expectAgreement(node, instance);
      expect(await fixture.factsOf(instance)).toEqual([]);
    },
  );

  it('in the release is replaced: Released, and the node Available', async () => {
    const { node, instance } = await begun('');
    await fixture.settle();
    await fixture.end(team, instance);
    const crash = crashAt('revoke', moment);
    await fixture.settle();
    expect([crash.hasCrashed(), (await fixture.instance(team, instance)).status]).toEqual([true, 'Released']);
    await expectAgreement(node, instance);
    expect((await fixture.factsOf(instance)).map(({ quantity }) => quantity)).toEqual(['1', '0']);
  });
});

describe('a cancellation', () => {
  it.each([
    ['reaching', 'Cancelled'],
    ['creating_user', 'Cancelled'],
    ['placing_keys', 'Cancelled'],
    ['setting_password', 'Cancelled'],
    ['verifying', 'Cancelled'],
    ['active', 'Released'],
  ] as const)('in the state %s ends as %s, and leaves nothing on the host', async (state, ended) => {
    const { node, instance } = await begun('');
    await fixture.reach(instance, state);
    await fixture.end(team, instance);
    await fixture.settle();
    expect((await fixture.instance(team, instance)).status).toBe(ended);
    await expectAgreement(node, instance);
  });
});

it('a worker that was frozen changes nothing on the host once another has taken over', async () => {
  const { node, instance } = await begun('');
  const hosts = fixture.gpuaas.get(SimulatedHosts);
  const original = hosts.setPassword.bind(hosts);
  let thaw: () => Promise<void> = () => Promise.resolve();
  jest.spyOn(hosts, 'setPassword').mockImplementationOnce((host, tenancy) => {
    thaw = () => original(host, tenancy, { signal: new AbortController().signal });
    return Promise.reject(new StepFailed('frozen', 'The worker was frozen.'));
  });
  await fixture.settle();
  await fixture.end(team, instance);
  await fixture.settle();
  await expect(thaw()).rejects.toMatchObject({ code: 'superseded' });
  await expectAgreement(node, instance);
});
