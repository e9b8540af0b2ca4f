import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  instances,
  podHoldings,
  sharedVolumes,
  vms,
  type CreateVm,
  type Vm,
  type VmChanged,
} from '@atoll/contracts/pods';
import { teamChanged, teamDeletionRequested } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { systemContext } from '@atoll/rpc';
import type { VmEntity } from '../model/vm.entity.js';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { billed } from '../usage/late-ends-fixture.js';
import { afterGuestEnd } from './vm-end.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
  await fixture.call(vms.createFlavour, { name: 'small', vcpus: 4, memory_gb: 16.5 });
});
afterAll(() => fixture.stop());

const isRunning = ({ status }: Vm) => status === 'running';
const running = (more: Partial<CreateVm> = {}, by = team) => fixture.runningVm(by, more);
const stop = ({ instance_id }: Vm, { member } = team) => fixture.call(vms.stop, { instance_id }, member);
const restart = ({ instance_id }: Vm, { member } = team) => fixture.call(vms.restart, { instance_id }, member);
const start = ({ instance_id }: Vm, { member } = team) => fixture.call(vms.start, { instance_id }, member);
const remove = ({ instance_id }: Vm, { member } = team) => fixture.call(vms.delete, { instance_id }, member);
const update = ({ instance_id }: Vm, more: object, { member } = team) =>
  fixture.call(vms.update, { instance_id, ...more }, member);
const factsOf = ({ instance_id }: Vm) => fixture.usageOf(`vm:${instance_id}`);

describe('a VM', () => {
  it('runs in the oldest GPU service of its region, with the size of its flavour, and is billed while it runs', async () => {
    const made = await fixture.createVm(team);
    expect(made).toMatchObject({
      status: 'pending',
      flavour: 'small',
      vcpus: 4,
      memory_gb: 16.5,
      gpuaas_id: '1',
      auto_restart: false,
    });
    await fixture.untilVm(made, isRunning);
    expect((await stop(made)).status).toBe('stopping');
    expect(await fixture.untilVm(made, ({ status }) => status === 'stopped')).toMatchObject({ reason: null });
    await start(made);
    await fixture.untilVm(made, isRunning);
    expect((await remove(made)).status).toBe('stopping');
    await fixture.untilVmDeleted(made);
    expect((await errorOf(fixture.vm(made))).message).toBe('No such VM.');
    const isListed = async (more: object) =>
      (await fixture.call(instances.list, { team_id: team.team_id, ...more }, team.member)).data.some(
        ({ id }) => id === made.instance_id,
      );
    expect([await isListed({}), await isListed({ include_ended: 'true' })]).toEqual([false, true]);
    const ended = await fixture.call(vms.list, { team_id: team.team_id, include_ended: 'true' }, team.member);
    expect(ended.data.find(({ instance_id }) => instance_id === made.instance_id)).toMatchObject({
      status: 'stopped',
      deleted_at: expect.stringMatching(/^20.*Z$/),
    });
    const facts = await factsOf(made);
    expect(facts.map(({ quantity, sku, kind }) => [quantity, sku, kind])).toEqual(
      ['1', '0', '1', '0'].map((quantity) => [quantity, 'vm.small', 'vm']),
    );
    const history = await fixture.query<{ at: Date }>(
      `SELECT at FROM machine_history WHERE machine = 'vm' AND instance = $1 AND to_state IN ('running', 'stopping', 'deleting') ORDER BY id`,
      [made.instance_id],
    );
    expect(facts.map(({ time }) => time)).toEqual(history.map(({ at }) => at.toISOString()));
    const left: string[] = [];
    for await (const { ref } of (await fixture.simulated.driverOf('1')).list(new AbortController().signal))
      left.push(ref.id);
    expect(left).not.toContain(made.instance_id);
  });

  it('starts again with auto_restart when its guest stops by itself, after a back-off, and is not billed meanwhile', async () => {
    const vm = await running({ name: 'crash', auto_restart: true });
    const again = await fixture.untilVm(vm, ({ restarts, status }) => restarts >= 1 && status === 'running');
    expect(again.reason).toBe('Its guest crashed.');
    await stop(vm);
    await fixture.untilVm(vm, ({ status }) => status === 'stopped');
    const spans = billed(await factsOf(vm));
    expect(spans.length).toBeGreaterThanOrEqual(2);
    const history = await fixture.query<{ at: Date }>(
      `SELECT at FROM machine_history WHERE machine = 'vm' AND instance = $1 AND 'running' IN (from_state, to_state) ORDER BY id`,
      [vm.instance_id],
    );
    // Its guest may have ended by itself again before it was stopped.
    expect(spans.flat().map((time, at) => time !== null && time <= history[at]!.at.toISOString())).not.toContain(false);
    // Of earlier runs nothing is left in the cluster.
    const left: number[] = [];
    const driver = await fixture.simulated.driverOf('1');
    for await (const { ref } of driver.list(new AbortController().signal))
      if (ref.id === vm.instance_id) left.push(ref.run);
    expect(left.length).toBe(1);
    await remove(vm);
  });

  it('waits longer with each run that ends by itself', async () => {
    const vm = await running({ auto_restart: true });
    for (const times of [1, 2, 3]) {
      const ref = { kind: 'vm', id: vm.instance_id, run: times } as const;
      await (await fixture.simulated.driverOf('1')).remove(ref, new AbortController().signal);
      await fixture.untilVm(vm, (found) => isRunning(found) && found.restarts === times);
      const [row] = await fixture.query<{ failures: number }>('SELECT failures FROM vm WHERE instance_id = $1', [
        vm.instance_id,
      ]);
      expect(row).toEqual({ failures: times });
    }
    await remove(vm);
    const waits = [0, 1, 2].map(
      (failures) => afterGuestEnd({ autoRestart: true, failures } as VmEntity, null, 50, 1_000).values.nextRunAt,
    );
    expect(waits.map((at) => at?.getTime())).toEqual([1_050, 1_100, 1_200]);
  });

  it.each([
    ['exit-0', 'stopped', 'Its guest shut down by itself.'],
    ['crash', 'failed', 'Its guest crashed.'],
    ['oom', 'failed', 'Its guest was killed: out of memory.'],
  ])('(%s) is %s without auto_restart, and shows why', async (scenario, status, reason) => {
    // Its run lasts a second: on a busy machine it may have ended before anyone saw it.
    const vm = await fixture.createVm(team, { name: `${scenario}-${newId().slice(-8)}` });
    expect(await fixture.untilVm(vm, (found) => found.status === status)).toMatchObject({ reason, restarts: 0 });
    expect((await factsOf(vm)).map(({ quantity }) => quantity)).toEqual(['1', '0']);
  });

  it('is restarted with a new run, at once, and not billed between; one at rest is started', async () => {
    const vm = await running({ name: 'again' });
    const before = await fixture.vm(vm);
    const { status, reason } = await restart(vm);
    expect([status, reason]).toEqual(['pending', null]);
    const after = await fixture.untilVm(vm, isRunning);
    expect(Date.parse(after.started_at ?? '')).toBeGreaterThan(Date.parse(before.started_at ?? ''));
    expect((await factsOf(vm)).map(({ quantity }) => quantity)).toEqual(['1', '0', '1']);
    const runs: number[] = [];
    const driver = await fixture.simulated.driverOf('1');
    for await (const { ref } of driver.list(new AbortController().signal))
      if (ref.id === vm.instance_id) runs.push(ref.run);
    expect(runs).toEqual([2]);
    await restart(vm);
    expect((await stop(vm)).status).toBe('stopping');
    expect((await errorOf(restart(vm))).code).toBe('conflict');
    await fixture.untilVm(vm, (found) => found.status === 'stopped');
    expect((await restart(vm)).status).toBe('pending');
    await fixture.untilVm(vm, isRunning);
    await remove(vm);
    await fixture.untilVmDeleted(vm);
  });

  it('that a user has stopped does not start again, whatever auto_restart says', async () => {
    const vm = await running({ auto_restart: true });
    await stop(vm);
    await fixture.untilVm(vm, ({ status }) => status === 'stopped');
    for (let round = 0; round < 5; round += 1) await fixture.work();
    expect(await fixture.vm(vm)).toMatchObject({ status: 'stopped', restarts: 0 });
  });

  it('does not start again where auto_restart is switched off while it waits', async () => {
    const vm = await running({ name: `crash-${newId().slice(-8)}`, auto_restart: true });
    await fixture.untilVm(vm, ({ status }) => status !== 'running');
    await fixture.query(
      `UPDATE vm SET next_run_at = clock_timestamp() + interval '1 hour' WHERE instance_id = $1 AND state = 'restarting'`,
      [vm.instance_id],
    );
    await fixture.hurry();
    await fixture.work();
    const { restarts } = await fixture.vm(vm);
    await update(vm, { auto_restart: false });
    await fixture.work();
    expect(await fixture.vm(vm)).toMatchObject({ status: 'failed', reason: 'Its guest crashed.', restarts });
  });

  it('mounts volumes, which are kept as long as it exists', async () => {
    const volume = await fixture.volume(team);
    const vm = await running({ name: 'mounting', volumes: [{ volume_id: volume.volume_id, path: '/data' }] });
    const removal = () => fixture.call(sharedVolumes.delete, { volume_id: volume.volume_id }, team.member);
    expect((await errorOf(removal())).message).toBe('The volume is mounted by VM mounting: unmount it there first.');
    await remove(vm);
    await removal();
    await fixture.untilVolumeDeleted(volume);
    const elsewhere = await fixture.volume(team, { region_id: '2' });
    const far = { volumes: [{ volume_id: elsewhere.volume_id, path: '/data' }] };
    expect((await errorOf(fixture.createVm(team, { name: 'far', ...far }))).code).toBe('not_supported');
  });

  it('is an instance, is counted, and other services are told whether it runs', async () => {
    const own = await fixture.team();
    const vm = await running({ name: 'seen', auto_restart: true }, own);
    const list = await fixture.call(instances.list, { team_id: own.team_id }, own.member);
    expect(list.data).toMatchObject([
      { id: vm.instance_id, name: 'seen', kind: 'vm', status: 'running', auto_restart: true },
    ]);
    const holdings = () => fixture.ask(podHoldings.ofTeam, { team_id: own.team_id }, systemContext('teams'));
    expect((await holdings()).regions).toMatchObject([{ vms: 1, vms_in_use: 1, pods: 0 }]);
    const [{ gpuaas_id } = { gpuaas_id: '' }] = await fixture.query<{ gpuaas_id: string }>(
      'SELECT gpuaas_id FROM vm WHERE instance_id = $1',
      [vm.instance_id],
    );
    const ofCluster = () => fixture.ask(podHoldings.ofGpuaas, { gpuaas_id }, systemContext('gpuaas'));
    const before = await ofCluster();
    expect(before.vms).toBeGreaterThan(0);
    expect(await errorOf(fixture.call(podHoldings.ofGpuaas, { gpuaas_id }, own.member))).toMatchObject({
      code: 'forbidden',
    });
    await update(vm, { name: 'renamed' }, own);
    await stop(vm, own);
    await fixture.untilVm(vm, ({ status }) => status === 'stopped');
    expect((await holdings()).regions).toMatchObject([{ vms: 1, vms_in_use: 0 }]);
    expect(await ofCluster()).toEqual(before);
    const told = (await fixture.published<VmChanged>('pods.vm_changed')).filter(
      ({ instance_id }) => instance_id === vm.instance_id,
    );
    expect(told.map(({ name, is_running }) => [name, is_running])).toEqual([
      ['seen', true],
      ['renamed', true],
      ['renamed', false],
    ]);
    expect(told.map(({ revision }) => revision)).toEqual(
      told.map(({ revision }) => revision).toSorted((one, other) => one - other),
    );
    expect(new Set(told.map(({ revision }) => revision)).size).toBe(told.length);
  });

  it('has its new name in the bill at once, and is billed as before', async () => {
    const vm = await running({ name: `old-${newId().slice(-8)}` });
    const names = Array.from({ length: 11 }, (_, at) => `new-${at}-${newId().slice(-8)}`);
    for (const name of names) await update(vm, { name });
    const [started, ...renamed] = await factsOf(vm);
    // Each is a copy of what it was told to be billed for, but for the name; and comes behind it, as texts are ordered.
    expect(renamed).toEqual(names.map((resource_name) => ({ ...started, resource_name, id: expect.any(String) })));
    const ids = [started, ...renamed].map((fact) => fact?.id ?? '');
    expect(ids).toEqual(
      [...new Set(ids)].toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))),
    );
    await stop(vm);
    await fixture.untilVm(vm, ({ status }) => status === 'stopped');
    await update(vm, { name: `last-${newId().slice(-8)}` });
    const [ended, last] = (await factsOf(vm)).slice(1 + names.length);
    expect([ended?.quantity, last?.quantity, last?.resource_name]).toEqual(['0', '0', expect.stringMatching(/^last-/)]);
    expect([ended!.time <= last!.time, ended!.sequence! < last!.sequence!]).toEqual([true, true]);
    expect(ended?.sequence).toBeGreaterThan(started?.sequence ?? Infinity);
  });

  it('ends with its team, where the deletion is forced', async () => {
    const own = await fixture.team();
    const vm = await running({}, own);
    await fixture.tell(teamDeletionRequested, { team_id: own.team_id, revision: 2, attempt_id: newId(), force: true });
    await fixture.untilVmDeleted(vm);
    expect(
      (await fixture.published<{ holds: string }>('teams.team_deletion_answered')).map(({ holds }) => holds),
    ).toContain('1 VM');
  });
});

describe('what refuses a VM', () => {
  it('is a driver that runs none, a flavour or region that does not exist, an image that is not allowed, and a name that the team has', async () => {
    const capabilities = await fixture.simulated.capabilitiesOf('1');
    const spy = jest.spyOn(fixture.simulated, 'capabilitiesOf').mockResolvedValueOnce({ ...capabilities, vms: false });
    expect(await errorOf(fixture.createVm(team))).toMatchObject({
      code: 'not_supported',
      message: 'The cluster of this GPU service does not support VMs.',
    });
    spy.mockRestore();
    expect((await errorOf(fixture.createVm(team, { flavour: 'huge' }))).details.errors?.[0]?.path).toBe('flavour');
    expect((await errorOf(fixture.createVm(team, { region_id: '77' }))).message).toBe('No such region.');
    fixture.neighbours.forbiddenImages.add('evil');
    expect((await errorOf(fixture.createVm(team, { image: 'evil' }))).code).toBe('image_not_allowed');
    const vm = await running({ name: 'taken', image: 'later-evil' });
    expect((await errorOf(fixture.createVm(team, { name: 'taken' }))).code).toBe('conflict');
    fixture.neighbours.forbiddenImages.add('later-evil');
    await stop(vm);
    await fixture.untilVm(vm, ({ status }) => status === 'stopped');
    expect((await errorOf(start(vm))).code).toBe('image_not_allowed');
    fixture.neighbours.forbiddenImages.clear();
  });

  it('is the most that a team may have, however many are created at once', async () => {
    const full = await fixture.team('member', 100);
    const { instance_id } = await running({}, full);
    await fixture.query(
      `INSERT INTO vm SELECT (jsonb_populate_record(v,
         jsonb_build_object('instance_id', gen_random_uuid(), 'state', 'failed', 'name', 'vm-' || n))).*
       FROM vm v, generate_series(1, 197) n WHERE instance_id = $1`,
      [instance_id],
    );
    const create = () => fixture.createVm(full, { name: `vm-${newId()}` });
    const outcomes = await Promise.allSettled(Array.from({ length: 6 }, create));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect(await errorOf(create())).toMatchObject({
      code: 'conflict',
      message: 'The team has 200 VMs, the maximum for a team.',
    });
    await running({}, await fixture.team());
  });

  it('is a flavour that there is already', async () => {
    expect((await errorOf(fixture.call(vms.createFlavour, { name: 'small', vcpus: 1, memory_gb: 1 }))).code).toBe(
      'conflict',
    );
    expect((await fixture.call(vms.listFlavours, {}, team.member)).data).toMatchObject([
      { name: 'small', memory_gb: 16.5 },
    ]);
  });

  it('is a suspension, which lets it be stopped and deleted', async () => {
    const suspended = await fixture.team();
    const vm = await running({}, suspended);
    const { team_id, workspace_id } = suspended;
    const workspaces = [{ id: workspace_id, name: 'default' }];
    await fixture.tell(teamChanged, {
      team_id,
      name: 'x',
      status: 'active',
      is_suspended: true,
      revision: 2,
      workspaces,
    });
    for (const attempt of [
      fixture.createVm(suspended, { name: 'more' }),
      start(vm, suspended),
      restart(vm, suspended),
      update(vm, { name: 'x' }, suspended),
    ])
      expect((await errorOf(attempt)).code).toBe('team_suspended');
    await stop(vm, suspended);
    await fixture.untilVm(vm, ({ status }) => status === 'stopped');
    await remove(vm, suspended);
    await fixture.untilVmDeleted(vm);
  });

  it('is a cluster that does not answer for a while, which only delays it', async () => {
    await fixture.simulated.world.faults.inject('gpuaas-1', 'start', 'away', 100);
    const vm = await fixture.createVm(team, { name: `vm-${newId()}` });
    await fixture.work();
    expect(await fixture.vm(vm)).toMatchObject({ status: 'pending', reason: 'The cluster does not answer.' });
    await fixture.simulated.world.faults.mend('gpuaas-1');
    await fixture.untilVm(vm, isRunning);
    await fixture.simulated.world.faults.inject('gpuaas-1', 'stop', 'refuse', 1);
    await remove(vm);
    await fixture.untilVmDeleted(vm);
    expect((await factsOf(vm)).map(({ quantity }) => quantity)).toEqual(['1', '0']);
  });

  const bad: [string, Partial<Record<keyof CreateVm, unknown>>][] = [
    ...['', 'Vm', '-a', 'a.b', 'a;b', '169.254.169.254', 'a'.repeat(58)].map((name): [string, object] => [
      'name',
      { name },
    ]),
    ...['debian\nx', 'Debian', 'a b'].map((image): [string, object] => ['image', { image }]),
    ['auto_restart', { auto_restart: 'yes' }],
    ...['/', '/proc', '/a/../b', 'data'].map((path): [string, object] => [
      'volumes.0.path',
      { volumes: [{ volume_id: '1', path }] },
    ]),
  ];
  it.each(bad)('is %s in a form that it may not have: %j', async (path, more) => {
    const error = await errorOf(fixture.createVm(team, more as Partial<CreateVm>));
    expect([error.code, error.details.errors?.[0]?.path]).toEqual(['invalid_input', path]);
  });
});
