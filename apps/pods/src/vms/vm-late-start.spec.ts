import type { ClusterDriver } from '@atoll/cluster';
import { sshKeys, vms, type Vm } from '@atoll/contracts/pods';
import { membershipChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { generateKeyPair } from '@atoll/ssh';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { frozenStart, heldStart as held, toldNoMore } from '../late-start-fixture.js';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';

let fixture: PodsFixture;
let team: ToldTeam;
let driver: ClusterDriver;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team();
  driver = await fixture.simulated.driverOf('1');
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16.5 });
});
afterAll(() => fixture.stop());

const isRunning = ({ status }: Vm) => status === 'running';
const create = (by = team) => fixture.createVm(by, { name: `vm-${newId()}` });
const heldStart = () => held(driver, 'startVm', () => fixture.work());
const phases = async ({ instance_id }: Vm, ...runs: number[]) => {
  const refs = runs.map((run) => ({ kind: 'vm', id: instance_id, run }) as const);
  return (await driver.observeVms(refs, AbortSignal.timeout(10_000))).map(({ phase }) => phase);
};

/** What another process does with the VM when the claim of the one that starts it has run out. */
async function takeOver(): Promise<void> {
  await fixture.query(
    'UPDATE vm SET claim_token = NULL, claimed_until = NULL, due_at = clock_timestamp(), parked_until = NULL',
  );
}

it('a run is wanted until its VM is stopped, and never again, whoever starts it', async () => {
  const vm = await create();
  const { instance_id } = vm;
  const late = await heldStart();
  expect(await late.isWanted()).toBe(true);
  await fixture.call(vms.stop, { instance_id }, team.member);
  expect(await late.isWanted()).toBe(false);
  await takeOver();
  await fixture.untilVm(vm, ({ status }) => status === 'stopped');
  await fixture.call(vms.start, { instance_id }, team.member);
  await fixture.untilVm(vm, isRunning);
  expect(await late.isWanted()).toBe(false);
  await late.goOn();
  expect(await phases(vm, late.run, late.run + 1)).toEqual(['absent', 'running']);
});

it('a run is not wanted when its VM is restarted while it starts', async () => {
  const vm = await create();
  const { instance_id } = vm;
  const first = await heldStart();
  await fixture.call(vms.restart, { instance_id }, team.member);
  expect(await first.isWanted()).toBe(false);
  await takeOver();
  const second = await heldStart();
  expect([second.run, await first.isWanted()]).toEqual([first.run + 1, false]);
  await Promise.all([first.goOn(), second.goOn()]);
  await fixture.untilVm(vm, isRunning);
});

it('a process whose claim has run out is not told that a run is wanted, although it is', async () => {
  const vm = await create();
  const first = await heldStart();
  await takeOver();
  const second = await heldStart();
  await toldNoMore(first);
  await Promise.all([first.goOn(), second.goOn()]);
  await fixture.untilVm(vm, isRunning);
});

it('a change of keys does not begin a run anew that has gone while they are told', async () => {
  const own = await fixture.team();
  const userId = newId();
  await fixture.tell(membershipChanged, {
    team_id: own.team_id,
    user_id: userId,
    role: 'member',
    is_invited: false,
    revision: 1,
  });
  const vm = await fixture.untilVm(await create(own), isRunning);
  await fixture.call(
    sshKeys.add,
    { public_key: generateKeyPair().publicKey },
    { ...own.member, scope: 'user', userId },
  );
  const due = () => fixture.query('SELECT FROM vm WHERE instance_id = $1 AND due_at IS NOT NULL', [vm.instance_id]);
  while ((await due()).length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  const telling = await heldStart();
  await driver.remove({ kind: 'vm', id: vm.instance_id, run: telling.run }, AbortSignal.timeout(10_000));
  await telling.goOn();
  expect(await phases(vm, telling.run)).toEqual(['absent']);
});

it('a VM that another process has brought to run stays, when the one that made it was frozen and goes on', async () => {
  const vm = await create();
  const goOn = await frozenStart(driver, 'startVm', () => fixture.work());
  await takeOver();
  await fixture.untilVm(vm, isRunning);
  await goOn();
  expect(await phases(vm, 1)).toEqual(['running']);
});
