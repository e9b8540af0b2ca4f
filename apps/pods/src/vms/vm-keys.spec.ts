import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { TeamRole, UserCaller } from '@atoll/contracts';
import { sshKeys, vms, type UserKeysChanged, type Vm } from '@atoll/contracts/pods';
import { membershipChanged, teamUpdated } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { generateKeyPair } from '@atoll/ssh';
import { timeoutFactor } from '@atoll/testing';
import { PodsFixture } from '../pods-fixture.js';
import { VmKeys } from './vm-keys.js';

let fixture: PodsFixture;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16.5 });
});
afterAll(() => fixture.stop());

const isRunning = ({ status }: Vm) => status === 'running';

it('a VM lets in the members whose role may use it, and is told when a key or a member changes', async () => {
  const own = await fixture.team();
  const [ada, grace, lin, stranger] = [newId(), newId(), newId(), newId()];
  let revision = 0;
  const join = (user_id: string, role: TeamRole | null, is_invited = false, { team_id } = own) => {
    revision += 1;
    return fixture.tell(membershipChanged, { team_id, user_id, role, is_invited, revision });
  };
  const hold = async (userId: string) => {
    const { publicKey: public_key } = generateKeyPair();
    const added = await fixture.call(sshKeys.add, { public_key }, { ...own.member, scope: 'user', userId });
    return { ...added, line: public_key };
  };
  await join(ada, 'member');
  await join(grace, 'viewer');
  // The team must not find out that this address is known.
  await join(lin, 'member', true);
  await join(stranger, 'member', false, await fixture.team());
  await hold(stranger);
  const [first, second, unknown] = [await hold(ada), await hold(grace), await hold(lin)];
  const vm = await fixture.runningVm(own);
  const { instance_id } = vm;
  const lets = async (run: number) =>
    (await fixture.simulated.world.cluster('gpuaas-1').vms.keysOf({ kind: 'vm', id: instance_id, run })).toSorted();
  /** By what the change itself makes due, unless `hurries`. */
  const untilIn = async (keys: { line: string }[], run = 1, hurries = false) => {
    const expected = keys.map(({ line }) => line).toSorted();
    for (let pauseMs = 0, end = Date.now() + 60_000 * timeoutFactor; ; pauseMs = 20) {
      const found = await lets(run);
      if (found.join() === expected.join()) return;
      if (Date.now() > end) throw new Error(`Still ${found.join()}.`);
      await delay(pauseMs);
      if (hurries) await fixture.hurry();
      await fixture.work();
    }
  };
  expect(await lets(1)).toEqual([first.line]);
  const third = await hold(ada);
  await untilIn([first, third]);
  await join(lin, 'member');
  await untilIn([first, third, unknown]);
  await join(lin, null);
  await untilIn([first, third]);
  await join(grace, 'team_admin');
  await untilIn([first, second, third]);
  await fixture.call(sshKeys.remove, { ssh_key_id: first.ssh_key_id }, { ...own.member, scope: 'user', userId: ada });
  await untilIn([second, third]);
  await fixture.simulated.world.faults.inject('gpuaas-1', 'start', 'away', 2);
  await join(ada, null);
  await untilIn([second], 1, true);
  expect(await fixture.vm(vm)).toMatchObject({ status: 'running', restarts: 0 });
  await fixture.call(vms.stop, { instance_id }, own.member);
  await fixture.untilVm(vm, ({ status }) => status === 'stopped');
  await join(ada, 'member');
  await fixture.call(vms.start, { instance_id }, own.member);
  await fixture.untilVm(vm, isRunning);
  expect(await lets(2)).toEqual([second, third].map(({ line }) => line).toSorted());
  await join(grace, null);
  await join(ada, 'billing_viewer');
  await untilIn([], 2);
  await fixture.call(vms.delete, { instance_id }, own.member);
  await fixture.untilVmDeleted(vm);
});

it('a VM lets in no key that was added without a second factor where the team required one when its user joined', async () => {
  const { team_id } = await fixture.team();
  const userId = newId();
  const session = { kind: 'session', id: newId(), openedAt: new Date().toISOString() } as const;
  fixture.owner.withoutSecondFactor.add(session.id);
  const add = async (public_key: string, caller: Partial<UserCaller> = {}) => {
    await fixture.call(sshKeys.add, { public_key }, { userId, scope: 'user', ...caller });
    return public_key;
  };
  const complete = await add(generateKeyPair().publicKey);
  const lacking = await add(generateKeyPair().publicKey, { credential: session });
  const { data } = await fixture.call(sshKeys.list, {}, { userId, scope: 'user' });
  expect(data.map(({ public_key, lacks_second_factor }) => [public_key, lacks_second_factor]).toSorted()).toEqual(
    [
      [complete, false],
      [lacking, true],
    ].toSorted(),
  );
  const told = (await fixture.published<UserKeysChanged>('pods.user_keys_changed')).filter(
    ({ user_id }) => user_id === userId,
  );
  expect(told.map(({ keys, without_factor }) => [keys, without_factor])).toEqual([
    [[complete], []],
    [[complete, lacking], [2]],
  ]);
  const join = (revision: number, required_factor_at_join?: boolean) =>
    fixture.tell(membershipChanged, {
      team_id,
      user_id: userId,
      role: 'member',
      revision,
      ...(required_factor_at_join !== undefined && { required_factor_at_join }),
    });
  await join(101);
  expect(await fixture.get(VmKeys).of(team_id)).toEqual([complete, lacking].toSorted());
  await join(102, true);
  expect(await fixture.get(VmKeys).of(team_id)).toEqual([complete]);
});

it('a VM takes 1 MiB of keys, in which each member has some, and its row does not grow with them', async () => {
  const own = await fixture.team();
  const [flood, member] = [newId(), newId()];
  const key = () => `ssh-rsa ${newId()}${'A'.repeat(14_956)}`;
  const hold = (userId: string, keys: string[]) =>
    fixture.query(
      `INSERT INTO ssh_key (ssh_key_id, user_id, name, type, fingerprint, public_key, created_at)
       SELECT gen_random_uuid(), $1, 'key', 'ssh-rsa', key, key, now() + place * interval '1 ms'
       FROM unnest($2::text[]) WITH ORDINALITY AS added (key, place)`,
      [userId, keys],
    );
  const [many, few] = [Array.from({ length: 100 }, key), [key()]];
  await hold(flood, many);
  await hold(member, few);
  for (const user_id of [flood, member])
    await fixture.tell(membershipChanged, { team_id: own.team_id, user_id, role: 'member', revision: 201 });
  const { instance_id } = await fixture.runningVm(own);
  const placed = await fixture.simulated.world.cluster('gpuaas-1').vms.keysOf({ kind: 'vm', id: instance_id, run: 1 });
  const fitting = Math.floor(1_048_576 / 15_001);
  const idsOf = (keys: readonly string[]) => keys.map((line) => line.slice(8, 44)).toSorted();
  expect(idsOf(placed)).toEqual(idsOf([...few, ...many.slice(0, fitting - 1)]));
  const [row] = await fixture.query<{ bytes: number }>(
    'SELECT octet_length(to_json(vm)::text) AS bytes FROM vm WHERE instance_id = $1',
    [instance_id],
  );
  expect(row?.bytes).toBeLessThan(5_000);
});

it('the roles of a deleted team go, and none is kept of what is told of it later', async () => {
  const { team_id } = await fixture.team();
  const [ada, grace, other] = [newId(), newId(), await fixture.team()];
  const join = (user_id: string, revision: number, of = team_id) =>
    fixture.tell(membershipChanged, { team_id: of, user_id, role: 'member', revision });
  await join(ada, 101);
  await join(ada, 101, other.team_id);
  const team = { name: 'Research', is_suspended: false, status: 'deleted' as const, default_workspace_id: null };
  await fixture.tell(teamUpdated, { team_id, revision: 103, team, workspaces: [], is_complete: false });
  await join(grace, 102);
  expect(
    await fixture.query<object>('SELECT team_id FROM member_role WHERE user_id = ANY ($1)', [[ada, grace]]),
  ).toEqual([{ team_id: other.team_id }]);
});
