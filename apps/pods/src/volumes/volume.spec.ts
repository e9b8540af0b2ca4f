import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { podBatches, pods, sharedVolumes, type ChangeMounts, type SharedVolume } from '@atoll/contracts/pods';
import { runs } from '@atoll/testing';
import { array, asyncProperty, assert, constantFrom } from 'fast-check';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { VolumeWatch } from './volume-watch.js';

let fixture: PodsFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await PodsFixture.start();
  team = await fixture.team('member', 100);
});
afterAll(() => fixture.stop());

const get = ({ volume_id }: SharedVolume) => fixture.call(sharedVolumes.get, { volume_id });
const remove = ({ volume_id }: SharedVolume, { member } = team) =>
  fixture.call(sharedVolumes.delete, { volume_id }, member);
const resize = ({ volume_id }: SharedVolume, size_in_gb: number, { member } = team) =>
  fixture.call(sharedVolumes.resize, { volume_id, size_in_gb }, member);
const isActive = ({ status }: SharedVolume) => status === 'active';
const factsOf = (volume: SharedVolume) => fixture.usageOf(`shared_storage:${volume.volume_id}`);
const mountOf = ({ volume_id }: SharedVolume, path = '/data') => ({ volumes: [{ volume_id, path }] });
const overdue = ({ volume_id }: SharedVolume) =>
  fixture.query(
    `UPDATE shared_volume SET deadline_at = clock_timestamp(), due_at = clock_timestamp(), parked_until = NULL
     WHERE volume_id = $1 AND deadline_at IS NOT NULL`,
    [volume_id],
  );
const instants = async ({ volume_id }: SharedVolume, ...states: string[]) => {
  const rows = await fixture.query<{ at: Date }>(
    `SELECT at FROM machine_history WHERE machine = 'shared_volume' AND instance = $1 AND to_state = ANY ($2) ORDER BY id`,
    [volume_id, states],
  );
  return rows.map(({ at }) => at.toISOString());
};

describe('a shared volume', () => {
  it('is created in the oldest GPU service of its region, grown, and billed for its size until it is deleted', async () => {
    const made = await fixture.createVolume(team, { name: 'datasets', size_in_gb: 100 });
    expect(made).toMatchObject({
      name: 'datasets',
      region_id: '1',
      gpuaas_id: '1',
      size_in_gb: 100,
      status: 'pending',
      reason: null,
    });
    expect(await fixture.untilVolume(made, isActive)).toMatchObject({
      used_size_in_gb: 0,
      workspace_id: team.workspace_id,
    });
    expect(await resize(made, 250)).toMatchObject({ status: 'resizing', size_in_gb: 100 });
    expect(await fixture.untilVolume(made, isActive)).toMatchObject({ size_in_gb: 250 });
    expect((await remove(made)).status).toBe('deleting');
    await fixture.untilVolumeDeleted(made);
    const facts = await factsOf(made);
    expect(facts.map(({ quantity }) => quantity)).toEqual(['100', '250', '0']);
    expect(facts.map(({ time }) => time)).toEqual(await instants(made, 'active', 'deleting'));
    expect(facts[0]).toMatchObject({
      kind: 'shared_storage',
      sku: 'storage.shared',
      resource_name: 'datasets',
      region_id: '1',
    });
  });

  it('does not shrink, and is resized by one request at a time', async () => {
    const volume = await fixture.volume(team, { size_in_gb: 20 });
    const refused = await errorOf(resize(volume, 19));
    expect([refused.code, refused.details.errors?.[0]?.path]).toEqual(['invalid_input', 'size_in_gb']);
    expect((await resize(volume, 20)).status).toBe('active');
    await resize(volume, 30);
    expect((await resize(volume, 30)).status).toBe('resizing');
    expect((await errorOf(resize(volume, 40))).code).toBe('conflict');
    expect((await errorOf(resize(volume, 25))).code).toBe('invalid_input');
    await fixture.untilVolume(volume, isActive);
  });

  it('is listed by region and page, the deleted ones where asked', async () => {
    const own = await fixture.team();
    const [one, two] = [await fixture.volume(own), await fixture.volume(own, { region_id: '2' })];
    const list = async (more: object = {}) =>
      (await fixture.call(sharedVolumes.list, { team_id: own.team_id, ...more }, own.member)).data.map(
        ({ volume_id }) => volume_id,
      );
    expect(await list()).toEqual([one.volume_id, two.volume_id]);
    expect(await list({ region_id: '2' })).toEqual([two.volume_id]);
    expect(await list({ limit: 1, page: 2 })).toEqual([two.volume_id]);
    await remove(one, own);
    await fixture.untilVolumeDeleted(one);
    expect(await list()).toEqual([two.volume_id]);
    expect(await list({ include_ended: 'true' })).toEqual([one.volume_id, two.volume_id]);
    const ended = await fixture.call(
      sharedVolumes.list,
      { team_id: own.team_id, include_ended: 'true', limit: 1 },
      own.member,
    );
    expect(ended.data).toMatchObject([{ volume_id: one.volume_id, status: 'deleted' }]);
    expect((await errorOf(get(one))).message).toBe('No such shared volume.');
  });

  it('is created once for one Idempotency-Key', async () => {
    const own = await fixture.team();
    const input = { team_id: own.team_id, region_id: '1', name: 'once', size_in_gb: 1 };
    const create = () => fixture.call(sharedVolumes.create, input, own.member, { key: 'volume', fingerprint: 'a' });
    expect(await create()).toEqual(await create());
  });
});

it('whatever is done to a volume in whatever order, billing is told each size that it has had, from its instant on, once, and 0 at the end', async () => {
  const step = constantFrom('grow', 'work', 'cluster away', 'give up');
  await assert(
    asyncProperty(array(step, { maxLength: 8 }), async (steps) => {
      const volume = await fixture.createVolume(team, { size_in_gb: 1 });
      let largest = 1;
      for (const each of steps) {
        if (each === 'grow') await resize(volume, (largest += 1)).catch(() => (largest -= 1));
        if (each === 'work') await fixture.work();
        if (each === 'cluster away') await fixture.simulated.world.faults.inject('gpuaas-1', 'volume', 'away');
        if (each === 'give up') await overdue(volume);
      }
      await fixture.simulated.world.faults.mend('gpuaas-1');
      const last = await fixture.untilVolume(volume, ({ status }) => status === 'active' || status === 'failed');
      await remove(volume);
      await fixture.untilVolumeDeleted(volume);
      const facts = await factsOf(volume);
      const sizes = facts.map(({ quantity }) => Number(quantity));
      const [end, ...held] = sizes.toReversed();
      if (last.status === 'failed') return expect(sizes).toEqual([]);
      expect([end, held[0], held.toReversed()]).toEqual([
        0,
        last.size_in_gb,
        held.toSorted((one, other) => one - other),
      ]);
      expect(new Set(held).size).toBe(held.length);
      const history = await instants(volume, 'active', 'deleting');
      expect(history).toEqual(expect.arrayContaining(facts.map(({ time }) => time)));
      expect([facts[0]?.time, facts.at(-1)?.time]).toEqual([history[0], history.at(-1)]);
    }),
    runs(15),
  );
});

describe('a volume that is mounted', () => {
  it('is written to by its pods, and says how much of it is used', async () => {
    const volume = await fixture.volume(team);
    const pod = await fixture.running(team, mountOf(volume));
    expect(pod.volumes).toEqual([{ volume_id: volume.volume_id, path: '/data' }]);
    await fixture.get(VolumeWatch).look('1');
    expect((await get(volume)).used_size_in_gb).toBe(0.025);
    const facts = await factsOf(volume);
    expect(facts.map(({ quantity, attributes }) => [quantity, attributes])).toEqual([
      ['10', { used_size_in_gb: 0 }],
      ['10', { used_size_in_gb: 0.025 }],
    ]);
    await fixture.act(pod, 'restart', team);
    await fixture.untilIs(pod, ({ status, restarts }) => status === 'running' && restarts === 1);
    await fixture.get(VolumeWatch).look('1');
    expect([(await get(volume)).used_size_in_gb, (await factsOf(volume)).length]).toEqual([0.05, 2]);
    // An hour later it is told again, which is another fact.
    await fixture.query(
      `UPDATE shared_volume SET used_told_at = used_told_at - interval '1 hour', used_bytes = 0 WHERE volume_id = $1`,
      [volume.volume_id],
    );
    await fixture.get(VolumeWatch).look('1');
    const told = await factsOf(volume);
    expect(new Set(told.map(({ id }) => id)).size).toBe(3);
  });

  it('is billed until it is deleted, also where the clock of the database was set back after its used size was told', async () => {
    const volume = await fixture.volume(team);
    const pod = await fixture.running(team, mountOf(volume));
    const enter = (sign: '+' | '-') =>
      fixture.query(
        `UPDATE shared_volume SET entered_at = entered_at ${sign} interval '30 minutes' WHERE volume_id = $1`,
        [volume.volume_id],
      );
    // The used size is told at the time that it is then: the clock reads half an hour more.
    await enter('+');
    await fixture.get(VolumeWatch).look('1');
    await enter('-');
    await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
    await fixture.untilDeleted(pod);
    await remove(volume);
    await fixture.untilVolumeDeleted(volume);
    expect((await factsOf(volume)).map(({ quantity }) => quantity)).toEqual(['10', '10', '0']);
  });

  it('is not deleted, in whatever run it is, and its mounters are named', async () => {
    const volume = await fixture.volume(team);
    const [pod, stopped] = [
      await fixture.running(team, mountOf(volume)),
      await fixture.create(team, mountOf(volume, '/a')),
    ];
    await fixture.act(stopped, 'stop', team);
    await fixture.until(stopped, 'stopped');
    const names = [pod, stopped].map(({ pod_name }) => `pod ${pod_name}`).toSorted();
    expect(await errorOf(remove(volume))).toMatchObject({
      code: 'conflict',
      message: `The volume is mounted by ${names.join(', ')}: unmount it there first.`,
    });
    for (const { pod_name } of [pod, stopped]) await fixture.call(pods.update, { pod_name, volumes: [] }, team.member);
    // Its present run still has the volume.
    expect((await errorOf(remove(volume))).message).toContain(pod.pod_name);
    await fixture.act(pod, 'restart', team);
    await fixture.untilIs(pod, ({ status, restarts }) => status === 'running' && restarts === 1);
    await remove(volume);
    await fixture.untilVolumeDeleted(volume);
  });

  it('stays so, whatever else is attached and detached at the same time', async () => {
    const pod = await fixture.create(team, mountOf(await fixture.volume(team)));
    const [kept] = pod.volumes;
    const more = await Promise.all(Array.from({ length: 20 }, () => fixture.createVolume(team)));
    for (const volume of more) await fixture.untilVolume(volume, isActive);
    const mounts = more.map(({ volume_id }) => ({ volume_id, path: `/volumes/${volume_id}` }));
    const { pod_name } = pod;
    const change = (changes: Omit<ChangeMounts, 'pod_name'>) =>
      fixture.call(podBatches.mount, { pod_name, ...changes }, team.member);
    await Promise.all(mounts.slice(0, 8).map((mount) => change({ attach: [mount] })));
    expect(new Set((await fixture.pod(pod)).volumes)).toEqual(new Set([kept, ...mounts.slice(0, 8)]));
    const detach = mounts.slice(0, 4).map(({ volume_id }) => volume_id);
    await Promise.all([
      ...detach.map((id) => change({ detach: [id] })),
      ...mounts.slice(8, 12).map((mount) => change({ attach: [mount] })),
    ]);
    expect(new Set((await fixture.pod(pod)).volumes)).toEqual(new Set([kept, ...mounts.slice(4, 12)]));
    await change({ attach: [{ volume_id: kept?.volume_id ?? '', path: '/elsewhere' }] });
    expect((await fixture.pod(pod)).volumes[0]).toEqual(kept);
    expect((await errorOf(change({ attach: mounts }))).message).toBe('volumes must be at most 20 for a pod.');
  });

  it('is gone once the pod that was being deleted is gone', async () => {
    const volume = await fixture.volume(team);
    const pod = await fixture.running(team, mountOf(volume));
    await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
    await remove(volume);
    await fixture.untilVolumeDeleted(volume);
    await fixture.untilDeleted(pod);
  });

  it('is not deleted under a pod that is created at the same time', async () => {
    for (let round = 0; round < 10; round += 1) {
      const volume = await fixture.volume(team);
      const [pod, deleted] = await Promise.allSettled([fixture.create(team, mountOf(volume)), remove(volume)]);
      expect([pod.status, deleted.status].toSorted()).toEqual(['fulfilled', 'rejected']);
      if (pod.status === 'fulfilled') await fixture.call(pods.delete, { pod_name: pod.value.pod_name }, team.member);
    }
  });

  it('is one of the team, of the pod’s GPU service, and neither failed nor being deleted', async () => {
    const other = await fixture.team();
    const refused = async (volume_id: string) =>
      errorOf(fixture.create(team, { volumes: [{ volume_id, path: '/data' }] }));
    const [foreign, unknown] = [await refused((await fixture.volume(other)).volume_id), await refused('999999')];
    expect([foreign.code, foreign.message]).toEqual(['not_found', unknown.message]);
    const elsewhere = await fixture.volume(team, { region_id: '2', name: 'far' });
    expect(await refused(elsewhere.volume_id)).toMatchObject({
      code: 'not_supported',
      message: `The volume ${elsewhere.volume_id} (far) is in GPU service 2: nothing in GPU service 1 can mount it.`,
    });
    const going = await fixture.volume(team);
    await remove(going);
    expect((await refused(going.volume_id)).code).toBe('conflict');
  });
});

describe('a cluster that does not do what is requested', () => {
  const inject = (times: number) => fixture.simulated.world.faults.inject('gpuaas-1', 'volume', 'refuse', times);

  it('is asked again, and says meanwhile why', async () => {
    await inject(100);
    const volume = await fixture.createVolume(team);
    await fixture.work();
    expect(await get(volume)).toMatchObject({ status: 'pending', reason: 'The cluster has no space left.' });
    await fixture.simulated.world.faults.mend('gpuaas-1');
    expect((await fixture.untilVolume(volume, isActive)).reason).toBeNull();
  });

  it('fails a volume that it does not create, which is never billed', async () => {
    await inject(100);
    const volume = await fixture.createVolume(team);
    await fixture.work();
    await overdue(volume);
    expect(await fixture.untilVolume(volume, ({ status }) => status === 'failed')).toMatchObject({
      reason: 'Deadline exceeded: The cluster has no space left.',
    });
    await fixture.simulated.world.faults.mend('gpuaas-1');
    await remove(volume);
    await fixture.untilVolumeDeleted(volume);
    expect(await factsOf(volume)).toEqual([]);
  });

  it('leaves a volume that it does not grow as large as it was', async () => {
    const volume = await fixture.volume(team);
    await inject(100);
    await resize(volume, 99);
    await fixture.work();
    await overdue(volume);
    expect(await fixture.untilVolume(volume, isActive)).toMatchObject({
      size_in_gb: 10,
      reason: 'Deadline exceeded: The cluster has no space left.',
    });
    await fixture.simulated.world.faults.mend('gpuaas-1');
    await resize(volume, 11);
    expect(await fixture.untilVolume(volume, isActive)).toMatchObject({ size_in_gb: 11, reason: null });
    expect((await factsOf(volume)).map(({ quantity }) => quantity)).toEqual(['10', '11']);
  });

  it('has lost a volume: it has failed, is billed no longer, and is not created again empty', async () => {
    const [volume, growing] = [await fixture.volume(team), await fixture.volume(team)];
    const driver = await fixture.simulated.driverOf('1');
    await resize(growing, 20);
    for (const { volume_id: id, team_id: teamId } of [volume, growing]) {
      await driver.remove({ kind: 'volume', id, run: 0, teamId }, new AbortController().signal);
    }
    await fixture.get(VolumeWatch).look('1');
    for (const each of [volume, growing]) {
      expect(await fixture.untilVolume(each, ({ status }) => status === 'failed')).toMatchObject({
        reason: 'The cluster no longer has the volume.',
      });
      expect((await factsOf(each)).map(({ quantity }) => quantity)).toEqual(['10', '0']);
    }
  });

  it('has no volumes: 422 with a sentence', async () => {
    const capabilities = await fixture.simulated.capabilitiesOf('1');
    const spy = jest
      .spyOn(fixture.simulated, 'capabilitiesOf')
      .mockResolvedValueOnce({ ...capabilities, volumes: false });
    expect(await errorOf(fixture.createVolume(team))).toMatchObject({
      code: 'not_supported',
      message: 'The cluster of this GPU service has no shared volumes.',
    });
    spy.mockRestore();
  });
});
