import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { type TeamRole } from '@atoll/contracts';
import { userKeysChanged } from '@atoll/contracts/pods';
import { membershipChanged } from '@atoll/contracts/teams';
import { newId, Transactions } from '@atoll/database';
import { generateKeyPair } from '@atoll/ssh';
import { StepFailed } from '@atoll/state-machine';
import { allStatementsDuring, mostRowsRead } from '@atoll/testing';
import { DataSource } from 'typeorm';
import type { ToldTeam } from '../../gpuaas-fixture.js';
import { BaremetalInstanceEntity } from '../../model/baremetal-instance.entity.js';
import { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';
import { BaremetalFixture } from '../baremetal-fixture.js';
import { KeyChanges } from './key-changes.js';
import { SimulatedHosts } from '../hosts/simulated-hosts.js';
import { TeamKeys } from './team-keys.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start();
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const [ada, grace] = [newId(), newId()];
const [one, other] = [generateKeyPair().publicKey, generateKeyPair().publicKey];
const join = (user_id: string, role: TeamRole | null, revision: number) =>
  fixture.gpuaas.tell(membershipChanged, { team_id: team.team_id, user_id, role, revision });
const hold = (user_id: string, keys: string[], revision: number) =>
  fixture.gpuaas.tell(userKeysChanged, { user_id, keys, revision });

it('the keys of those who may use what the team has open its hosts; changes reach the host, whatever the order they come in', async () => {
  await join(ada, 'member', 1);
  await join(grace, 'viewer', 2);
  await hold(ada, [one], 1);
  await hold(grace, [other], 1);
  const node = await fixture.available();
  const instance = await fixture.settled(team, { specs: { gpu_count: 8 } });
  const keysOnHost = async () => Object.values(await fixture.usersOf(node)).flatMap(({ keys }) => keys);
  expect([await keysOnHost(), instance.keys_stale]).toEqual([[one], false]);
  await join(grace, 'team_admin', 3);
  await join(grace, 'viewer', 2);
  expect((await fixture.instance(team, instance)).keys_stale).toBe(true);
  await fixture.work();
  expect((await keysOnHost()).sort()).toEqual([one, other].sort());
  await hold(ada, [], 2);
  await hold(ada, [one], 1);
  await fixture.work();
  expect(await keysOnHost()).toEqual([other]);
  await join(grace, null, 4);
  await fixture.gpuaas.query(`UPDATE baremetal_node SET name = 'away.keys-refuse' WHERE node_id = $1`, [node.node_id]);
  await fixture.work();
  expect(await fixture.instance(team, instance)).toMatchObject({ status: 'Active', keys_stale: true, error: null });
  await fixture.gpuaas.query(`UPDATE baremetal_node SET name = 'back' WHERE node_id = $1`, [node.node_id]);
  await fixture.pass(31);
  await fixture.work();
  expect([await keysOnHost(), (await fixture.instance(team, instance)).keys_stale]).toEqual([[], false]);
  expect((await fixture.credentials(team, instance)).username).toBe(Object.keys(await fixture.usersOf(node))[0]);
});

it('the keys that were added without a second factor open no host of a team that required one when their user joined', async () => {
  const [own, lin] = [await fixture.team(), newId()];
  const joined = { team_id: own.team_id, user_id: lin, role: 'member' as const };
  await fixture.gpuaas.tell(userKeysChanged, { user_id: lin, keys: [one, other], without_factor: [2], revision: 1 });
  await fixture.gpuaas.tell(membershipChanged, { ...joined, revision: 1 });
  const keys = async () => (await fixture.gpuaas.get(TeamKeys).of(own.team_id)).toSorted();
  expect(await keys()).toEqual([one, other].toSorted());
  await fixture.gpuaas.tell(membershipChanged, { ...joined, required_factor_at_join: true, revision: 2 });
  expect(await keys()).toEqual([one]);
  await fixture.gpuaas.tell(userKeysChanged, { user_id: lin, keys: [one, other], revision: 2 });
  expect(await keys()).toEqual([one, other].toSorted());
});

it('the keys of somebody who was invited open no host before they accept, so that nobody finds out whether the address is known', async () => {
  const own = await fixture.team();
  const lin = newId();
  const invited = { team_id: own.team_id, user_id: lin, role: 'member' as const };
  await hold(lin, [other], 1);
  await fixture.gpuaas.tell(membershipChanged, { ...invited, is_invited: true, revision: 1 });
  const node = await fixture.available();
  await fixture.settled(own, { specs: { gpu_count: 8 } });
  const keysOnHost = async () => Object.values(await fixture.usersOf(node)).flatMap(({ keys }) => keys);
  expect(await keysOnHost()).toEqual([]);
  await fixture.gpuaas.tell(membershipChanged, { ...invited, revision: 2 });
  await fixture.work();
  expect(await keysOnHost()).toEqual([other]);
});

it('as many keys as go on a host are on it, the first of each member before the second of anyone; and one that goes makes room', async () => {
  const theirs = await fixture.team();
  const tell = (user_id: string, keys: string[], revision: number) =>
    fixture.gpuaas.tell(userKeysChanged, { user_id, keys, revision });
  const key = (length: number) => `ssh-rsa ${newId().replaceAll('-', '')}${'A'.repeat(length - 40)}`;
  // 1 MiB in all, each with the end of its line.
  const many = Array.from({ length: 100 }, () => key(15_000));
  const [late, last] = [key(15_000), key(15_000)];
  const [flood, member, gone] = [newId(), newId(), newId()];
  await tell(flood, many, 1);
  // Those before it were added without the second factor that the team required, and take no turns.
  const lacking = Array.from({ length: 99 }, () => key(60));
  const without_factor = lacking.map((_, at) => at + 1);
  await fixture.gpuaas.tell(userKeysChanged, {
    user_id: member,
    keys: [...lacking, late],
    without_factor,
    revision: 1,
  });
  await tell(gone, [last], 1);
  const joined = { team_id: theirs.team_id, role: 'member' as const, required_factor_at_join: true, revision: 1 };
  for (const user_id of [flood, member, gone]) await fixture.gpuaas.tell(membershipChanged, { ...joined, user_id });
  const model = `many-${newId().slice(-8)}`;
  const node = await fixture.available('', { specs: { gpu_model: model, gpu_count: 1, cpu_cores: 8, memory_gb: 64 } });
  const instance = await fixture.settled(theirs, { specs: { gpu_model: model } });
  const keysOnHost = async () => Object.values(await fixture.usersOf(node)).flatMap(({ keys }) => keys);
  const fitting = Math.floor(1_048_576 / 15_001);
  expect((await keysOnHost()).toSorted()).toEqual([late, last, ...many.slice(0, fitting - 2)].toSorted());
  // Nor does a sweep find that others are missing.
  await fixture.sweep();
  expect((await fixture.instance(theirs, instance)).keys_stale).toBe(false);
  await fixture.gpuaas.tell(membershipChanged, { team_id: theirs.team_id, user_id: gone, role: null, revision: 2 });
  await fixture.work();
  expect((await keysOnHost()).toSorted()).toEqual([late, ...many.slice(0, fitting - 1)].toSorted());
  await fixture.end(theirs, instance);
  await fixture.work();
  // The row of an instance stays for ever.
  expect(
    await fixture.gpuaas.query('SELECT state, placed_keys FROM baremetal_instance WHERE instance_id = $1', [
      instance.instance_id,
    ]),
  ).toEqual([{ state: 'released', placed_keys: '' }]);
});

it('a change that met a locked row reaches the host by the next sweep', async () => {
  const theirs = await fixture.team();
  const user_id = newId();
  await fixture.gpuaas.tell(membershipChanged, { team_id: theirs.team_id, user_id, role: 'member', revision: 1 });
  await fixture.gpuaas.tell(userKeysChanged, { user_id, keys: [one, other], revision: 1 });
  const model = `keys-${newId().slice(-8)}`;
  const node = await fixture.available('', { specs: { gpu_model: model, gpu_count: 1, cpu_cores: 8, memory_gb: 64 } });
  const instance = await fixture.settled(theirs, { specs: { gpu_model: model } });
  const locked = fixture.gpuaas.get(Transactions).run(async (manager) => {
    await manager.query('SELECT FROM baremetal_instance WHERE instance_id = $1 FOR NO KEY UPDATE', [
      instance.instance_id,
    ]);
    await fixture.gpuaas.tell(userKeysChanged, { user_id, keys: [other], revision: 2 });
  });
  await locked;
  await fixture.work();
  const keysOnHost = async () => Object.values(await fixture.usersOf(node)).flatMap(({ keys }) => keys);
  expect((await keysOnHost()).toSorted()).toEqual([one, other].toSorted());
  await fixture.sweep();
  await fixture.work();
  expect([await keysOnHost(), (await fixture.instance(theirs, instance)).keys_stale]).toEqual([[other], false]);
});

/** A host of a team whose one member has one key, and how keys are changed there. */
async function hostOfOneKey() {
  const theirs = await fixture.team();
  const user_id = newId();
  await fixture.gpuaas.tell(membershipChanged, { team_id: theirs.team_id, user_id, role: 'member', revision: 1 });
  await fixture.gpuaas.tell(userKeysChanged, { user_id, keys: [one], revision: 1 });
  const model = `keys-${newId().slice(-8)}`;
  const node = await fixture.available('', { specs: { gpu_model: model, gpu_count: 1, cpu_cores: 8, memory_gb: 64 } });
  const instance = await fixture.settled(theirs, { specs: { gpu_model: model } });
  const hosts = fixture.gpuaas.get(SimulatedHosts);
  const changeKeys = hosts.changeKeys.bind(hosts);
  return { theirs, user_id, node, instance, hosts, changeKeys };
}

it('keys that a frozen worker sends after newer ones are refused by the host', async () => {
  const { theirs, user_id, node, instance, hosts, changeKeys } = await hostOfOneKey();
  let thaw: () => Promise<void> = () => Promise.resolve();
  jest.spyOn(hosts, 'changeKeys').mockImplementationOnce((host, tenancy) => {
    thaw = () => changeKeys(host, tenancy, { signal: new AbortController().signal });
    return Promise.reject(new StepFailed('frozen', 'The worker was frozen.'));
  });
  await fixture.gpuaas.tell(userKeysChanged, { user_id, keys: [one, other], revision: 2 });
  await fixture.work();
  await fixture.gpuaas.tell(userKeysChanged, { user_id, keys: [other], revision: 3 });
  await fixture.work();
  await expect(thaw()).rejects.toMatchObject({ code: 'superseded' });
  expect(Object.values(await fixture.usersOf(node)).flatMap(({ keys }) => keys)).toEqual([other]);
  expect(await fixture.instance(theirs, instance)).toMatchObject({ status: 'Active', keys_stale: false });
});

it('a worker that was frozen after it had brought older keys does not note them as those of the host', async () => {
  const { theirs, user_id, node, instance, hosts, changeKeys } = await hostOfOneKey();
  const { manager } = fixture.gpuaas.get(DataSource);
  jest.spyOn(hosts, 'changeKeys').mockImplementationOnce(async (at, tenancy, context) => {
    await changeKeys(at, tenancy, context);
    // Its claim has expired, and another worker has the instance, with newer keys.
    await fixture.gpuaas.tell(userKeysChanged, { user_id, keys: [other], revision: 3 });
    const key = { instanceId: instance.instance_id };
    await manager.update(BaremetalInstanceEntity, key, { claimToken: newId() });
    const row = await manager.findOneByOrFail(BaremetalInstanceEntity, key);
    const host = await manager.findOneByOrFail(BaremetalNodeEntity, { nodeId: node.node_id });
    expect(await fixture.gpuaas.get(KeyChanges).bring(row, host, context)).toBe('rest');
  });
  await fixture.gpuaas.tell(userKeysChanged, { user_id, keys: [one, other], revision: 2 });
  await fixture.work();
  expect(Object.values(await fixture.usersOf(node)).flatMap(({ keys }) => keys)).toEqual([other]);
  expect((await fixture.instance(theirs, instance)).keys_stale).toBe(false);
});

it('a host that has seen greater numbers than a restored database knows gets new keys all the same, at the next try', async () => {
  const { theirs, user_id, node, instance } = await hostOfOneKey();
  await fixture.gpuaas.query('UPDATE simulated_host SET fence = fence + 40 WHERE node_id = $1', [node.node_id]);
  await fixture.gpuaas.tell(membershipChanged, { team_id: theirs.team_id, user_id, role: null, revision: 2 });
  await fixture.work();
  expect(Object.values(await fixture.usersOf(node)).flatMap(({ keys }) => keys)).toEqual([]);
  const { attempts, keys_stale } = await fixture.instance(theirs, instance);
  const tries = attempts.filter(({ action }) => action === 'keys').map(({ outcome }) => outcome);
  expect([tries, keys_stale]).toEqual([['failed', 'succeeded'], false]);
});

it('a number that a tenant with root has written on its host, and no user can have, is not taken over', async () => {
  const { theirs, user_id, node, instance } = await hostOfOneKey();
  await fixture.gpuaas.query('UPDATE simulated_host SET fence = 999999999999999 WHERE node_id = $1', [node.node_id]);
  await fixture.gpuaas.tell(membershipChanged, { team_id: theirs.team_id, user_id, role: null, revision: 2 });
  await fixture.work();
  const [row] = await fixture.gpuaas.query<{ fence: string }>('SELECT fence FROM baremetal_node WHERE node_id = $1', [
    node.node_id,
  ]);
  expect([row?.fence, (await fixture.instance(theirs, instance)).keys_stale]).toEqual(['100000001', true]);
});

it('a sweep for hosts with old keys reads no instance that has ended', async () => {
  const ended = 5_000;
  await fixture.gpuaas.query(
    `INSERT INTO baremetal_instance (instance_id, team_id, workspace_id, name, username, state)
     SELECT gen_random_uuid(), $1, $1, 'ended', 'ended', 'released' FROM generate_series(1, $2::int)`,
    [newId(), ended],
  );
  await fixture.gpuaas.query('VACUUM (ANALYZE) baremetal_instance');
  const sent = await allStatementsDuring(() => fixture.gpuaas.get(TeamKeys).staleInstances());
  const [sweep] = sent.filter(({ text }) => /placed_keys/.test(text));
  expect(sweep && (await mostRowsRead(fixture.gpuaas, sweep))).toBeLessThan(ended / 2);
});

it('a sweep works the keys of each team out once, however many instances and teams there are', async () => {
  const teams = 500;
  await fixture.gpuaas.query(
    `WITH made AS (SELECT gen_random_uuid() AS team_id FROM generate_series(1, $1::int)), instances AS (
       INSERT INTO baremetal_instance (instance_id, team_id, workspace_id, name, username, state, placed_keys)
       SELECT gen_random_uuid(), team_id, team_id, 'many', 'many', 'active', '' FROM made
     ), roles AS (
       INSERT INTO member_role (team_id, user_id, role, revision) SELECT team_id, gen_random_uuid(), 'member', 1 FROM made, generate_series(1, 10) RETURNING user_id
     ) INSERT INTO user_ssh_keys (user_id, keys, revision) SELECT user_id, ARRAY[user_id || ' one', user_id || ' two'], 1 FROM roles`,
    [teams],
  );
  const sent = await allStatementsDuring(() => fixture.gpuaas.get(TeamKeys).staleInstances());
  const [sweep] = sent.filter(({ text }) => /placed_keys/.test(text));
  expect(sweep && (await mostRowsRead(fixture.gpuaas, sweep))).toBeLessThan(100 * teams);
  await fixture.gpuaas.query(`DELETE FROM baremetal_instance WHERE name = 'many'`);
});
