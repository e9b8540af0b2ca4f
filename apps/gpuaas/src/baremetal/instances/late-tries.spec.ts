import { afterAll, afterEach, beforeAll, expect, it, jest } from '@jest/globals';
import { userKeysChanged } from '@atoll/contracts/pods';
import { membershipChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { generateKeyPair } from '@atoll/ssh';
import { StepFailed } from '@atoll/state-machine';
import { BaremetalFixture } from '../baremetal-fixture.js';
import { Fences } from '../hosts/fences.js';
import { codeOf } from '../hosts/host-driver-contract-fixture.js';
import { SimulatedHosts } from '../hosts/simulated-hosts.js';
import { TeamKeys } from '../keys/team-keys.js';

let fixture: BaremetalFixture;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
});
afterEach(() => {
  jest.restoreAllMocks();
});
afterAll(() => fixture.stop());

/** A request of a team with one member, who has a key, for a node of its own. */
async function requested() {
  const team = await fixture.team();
  const user_id = newId();
  const key = generateKeyPair().publicKey;
  await fixture.gpuaas.tell(membershipChanged, { team_id: team.team_id, user_id, role: 'member', revision: 1 });
  await fixture.gpuaas.tell(userKeysChanged, { user_id, keys: [key], revision: 1 });
  const gpu_model = `late-${newId().slice(-8)}`;
  const node = await fixture.available('', { specs: { gpu_model, gpu_count: 8, cpu_cores: 64, memory_gb: 512 } });
  const instance = await fixture.request(team, { specs: { gpu_model } });
  const removeMember = () =>
    fixture.gpuaas.tell(membershipChanged, { team_id: team.team_id, user_id, role: null, revision: 2 });
  const keysOnHost = async () => Object.values(await fixture.usersOf(node)).flatMap(({ keys }) => keys);
  return { team, key, node, instance, removeMember, keysOnHost };
}

type HostOperation = 'createUser' | 'placeKeys' | 'setPassword' | 'verify';

/** The first try of this step does not reach the host in time. Returns what brings it there later. */
function delayed(
  operation: HostOperation,
  then: () => Promise<unknown> = () => Promise.resolve(),
): () => Promise<string> {
  const hosts = fixture.gpuaas.get(SimulatedHosts);
  const original = hosts[operation].bind(hosts);
  let arrive: () => Promise<void> = () => Promise.reject(new Error('There was no try.'));
  jest.spyOn(hosts, operation).mockImplementationOnce(async (host, tenancy) => {
    arrive = () => original(host, tenancy, { signal: new AbortController().signal });
    await then();
    throw new StepFailed('host_timeout', 'The host did not answer in time.');
  });
  return () => codeOf(arrive());
}

it('a late try of verify does not put the key of a removed member back', async () => {
  const { team, instance, removeMember, keysOnHost } = await requested();
  const arrive = delayed('verify', removeMember);
  await fixture.settle();
  expect((await fixture.instance(team, instance)).status).toBe('Active');
  expect([await arrive(), await keysOnHost()]).toEqual(['superseded', []]);
});

it.each<HostOperation>(['createUser', 'placeKeys', 'setPassword', 'verify'])(
  'a try of %s that arrives after the next one of the same state is refused by the host',
  async (operation) => {
    const { team, instance } = await requested();
    const arrive = delayed(operation);
    const hosts = fixture.gpuaas.get(SimulatedHosts);
    const original = Reflect.get(SimulatedHosts.prototype, operation).bind(hosts);
    let late = '';
    jest.spyOn(hosts, operation).mockImplementationOnce(async (...inputs) => {
      await original(...inputs);
      late = await arrive();
    });
    await fixture.settle();
    expect([(await fixture.instance(team, instance)).status, late]).toEqual(['Active', 'superseded']);
  },
);

it('a late try of a worker of the release before, which takes no number for each try, is refused after a cancellation', async () => {
  const { team, node, instance } = await requested();
  await fixture.reach(instance, 'creating_user');
  jest.spyOn(fixture.gpuaas.get(Fences), 'next').mockImplementation(({ fence }) => Promise.resolve(fence));
  const arrive = delayed('createUser', () => fixture.end(team, instance));
  await fixture.settle();
  expect((await fixture.instance(team, instance)).status).toBe('Cancelled');
  expect([await arrive(), await fixture.usersOf(node)]).toEqual(['superseded', {}]);
});

it('a worker that was frozen after it had read the keys of the team does not note them in place of newer ones', async () => {
  const { instance } = await requested();
  await fixture.reach(instance, 'verifying');
  const keys = fixture.gpuaas.get(TeamKeys);
  const of = keys.of.bind(keys);
  const read = jest.spyOn(keys, 'of').mockImplementationOnce(async (teamId) => {
    const older = await of(teamId);
    await fixture.gpuaas.query(
      `UPDATE baremetal_instance SET claim_token = gen_random_uuid(), claimed_until = clock_timestamp(), placed_keys = 'newer' WHERE instance_id = $1`,
      [instance.instance_id],
    );
    return older;
  });
  while (read.mock.calls.length === 0) await fixture.workOnce();
  expect(
    await fixture.gpuaas.query('SELECT placed_keys FROM baremetal_instance WHERE instance_id = $1', [
      instance.instance_id,
    ]),
  ).toEqual([{ placed_keys: 'newer' }]);
});
