import { ClusterError } from '@atoll/cluster';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { clusterChanged } from '@atoll/contracts/gpuaas';
import { podLogs, pods, sharedVolumes, sshKeys, type CreatePod, type Pod } from '@atoll/contracts/pods';
import { newId } from '@atoll/database';
import { generateKeyPair } from '@atoll/ssh';
import { describeWhere, podmanImage, podmanLacks, startPodman, timeoutFactor, type Podman } from '@atoll/testing';
import ssh2 from 'ssh2';
import { errorOf, PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { SshServer } from '../ssh-door/ssh-server.js';
import { Clusters } from './clusters.js';

const patienceMs = 90_000 * timeoutFactor;

describeWhere(podmanLacks(), 'pods on a real container engine', () => {
  let podman: Podman;
  let fixture: PodsFixture;
  let team: ToldTeam;
  beforeAll(async () => {
    podman = await startPodman({ hasOwnNetwork: true });
    fixture = await PodsFixture.start({ isRunning: true, sshPort: '0' });
    fixture.neighbours.clusters.set('1', { driver: 'docker', socket: podman.socketPath, door_image: podmanImage });
    team = await fixture.team('member', 8);
  });
  afterAll(async () => {
    await fixture?.stop();
    await podman?.stop();
  });

  const create = (command: string[], more: Partial<CreatePod> = {}) =>
    fixture.create(team, { image: podmanImage, command, memory_gb: 0.25, ...more });
  const idle = ['bash', '-c', 'trap "exit 0" TERM; sleep infinity & wait'];
  const comesTo = async (pod: Pod, isAsItShould: (found: Pod) => boolean): Promise<Pod> => {
    for (const lateMs = Date.now() + patienceMs; ; await delay(50)) {
      const found = await fixture.pod(pod);
      if (isAsItShould(found)) return found;
      if (Date.now() > lateMs) throw new Error(`Still ${JSON.stringify(found)}.`);
    }
  };
  const until = async (isSo: () => Promise<boolean>): Promise<void> => {
    for (const lateMs = Date.now() + patienceMs; !(await isSo()); await delay(50)) {
      if (Date.now() > lateMs) throw new Error('The condition was not met in time.');
    }
  };
  const running = async (more: Partial<CreatePod> = {}) =>
    comesTo(await create(idle, more), ({ status }) => status === 'running');
  const stops = async (pod: Pod) => {
    await fixture.act(pod, 'stop', team);
    await comesTo(pod, ({ status }) => status === 'stopped');
  };
  /** All but the keepers of networks. */
  const containers = async () =>
    (await podman.cli('ps', '--format', '{{.Names}} {{.Image}}'))
      .split('\n')
      .filter((line) => line && !line.includes('-keeper-'));

  it('run as containers of their image, and are gone with their pod', async () => {
    const pod = await running();
    expect(await containers()).toEqual([
      expect.stringMatching(new RegExp(`^atoll-.*-pod-${pod.pod_id}-1 ${podmanImage}$`)),
    ]);
    await stops(pod);
    expect(await containers()).toEqual([]);
  });

  it('tell the exit code of their process, and start again with back-off by their policy', async () => {
    const failing = await create(['bash', '-c', 'exit 3'], { restart: 'never' });
    expect(await comesTo(failing, ({ status }) => status === 'failed')).toMatchObject({ exit_code: 3, restarts: 0 });
    const again = await create(['bash', '-c', 'exit 4'], { restart: 'always' });
    expect(await comesTo(again, ({ restarts }) => restarts >= 2)).toMatchObject({ exit_code: 4 });
    await stops(again);
  });

  it('say that their image cannot be had', async () => {
    const pod = await create(idle, { image: 'localhost/no-such-image:1' });
    expect((await comesTo(pod, ({ reason }) => reason !== null && /image/i.test(reason))).status).not.toBe('running');
    await fixture.act(pod, 'stop', team);
  });

  it('go on while the engine is killed and comes back, and what was removed by hand starts again', async () => {
    const [staying, removed] = [await running(), await running()];
    await podman.kill();
    await podman.restart();
    const name = (await containers()).find((line) => line.includes(removed.pod_id))?.split(' ')[0] ?? '';
    await podman.cli('rm', '--force', '--time', '0', name);
    await comesTo(removed, ({ status, restarts }) => status === 'running' && restarts === 1);
    expect(await comesTo(staying, ({ status }) => status === 'running')).toMatchObject({ restarts: 0 });
    for (const pod of [staying, removed]) await stops(pod);
  });

  it('share a volume, which is gone when it is deleted, and not before', async () => {
    const volume = await fixture.createVolume(team);
    const volumes = [{ volume_id: volume.volume_id, path: '/data' }];
    const writer = await create(['bash', '-c', 'echo shared > /data/file'], { volumes, restart: 'on_failure' });
    await comesTo(writer, ({ status }) => status === 'stopped');
    const reader = await create(['bash', '-c', 'grep -q shared /data/file'], { volumes, restart: 'never' });
    expect((await comesTo(reader, ({ status }) => status === 'stopped' || status === 'failed')).exit_code).toBe(0);
    const remove = () => fixture.call(sharedVolumes.delete, { volume_id: volume.volume_id }, team.member);
    expect((await errorOf(remove())).code).toBe('conflict');
    for (const { pod_name } of [writer, reader]) await fixture.call(pods.delete, { pod_name }, team.member);
    expect((await remove()).status).toBe('deleting');
    // Where a volume goes while Podman lists them, it lists none and fails.
    const listed = () => podman.cli('volume', 'ls', '--quiet').catch(() => null);
    const isLeft = async () => (await listed())?.includes(`-volume-${volume.volume_id}`) ?? true;
    await until(async () => !(await isLeft()));
    const told = (await fixture.usageOf(`shared_storage:${volume.volume_id}`)).map(({ quantity }) => quantity);
    // Where it has been looked at meanwhile, billing has been told of its used bytes too.
    expect([...new Set(told)]).toEqual(['10', '0']);
  });

  it('write on and let go of their volumes although a run before was created and never started', async () => {
    const volume = await fixture.createVolume(team);
    const driver = await fixture.get(Clusters).driverOf('1');
    const started = jest.spyOn(driver, 'startPod');
    const volumes = [{ volume_id: volume.volume_id, path: '/data' }];
    const pod = await create(['bash', '-c', 'while true; do echo tick; sleep 0.2; done'], { volumes });
    await comesTo(pod, ({ status }) => status === 'running');
    const run = started.mock.lastCall?.[0];
    if (!run) throw new Error('It was started by nobody.');
    await stops(pod);
    // As where the pod was stopped while another process, which is dead now, created the container of its second run.
    const left = { ...run, ref: { ...run.ref, run: 2 } };
    const died = new ClusterError('unreachable', 'The process is dead.');
    await expect(driver.startPod(left, () => Promise.reject(died), AbortSignal.timeout(patienceMs))).rejects.toThrow(
      died,
    );
    await fixture.query('UPDATE pod SET run = 2 WHERE pod_id = $1', [pod.pod_id]);
    await fixture.query('INSERT INTO pod_run (pod_id, run, gpuaas_id, ended_at) VALUES ($1, 2, 1, clock_timestamp())', [
      pod.pod_id,
    ]);
    const [{ at } = {}] = await fixture.query<{ at: Date }>('SELECT clock_timestamp() AS at');
    await fixture.act(pod, 'start', team);
    await comesTo(pod, ({ status }) => status === 'running');
    const newLines = () =>
      fixture.call(podLogs.read, { pod_name: pod.pod_name, since: at?.toISOString() }, team.member);
    await until(async () => (await newLines()).data.length > 0);
    await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
    await fixture.call(sharedVolumes.delete, { volume_id: volume.volume_id }, team.member);
    await fixture.untilVolumeDeleted(volume);
  });

  it('are entered by SSH with a key of a member, and left when the member goes', async () => {
    const pod = await running();
    const user = { userId: newId(), scope: 'user' } as const;
    const { privateKey, publicKey: public_key } = generateKeyPair();
    const { ssh_key_id } = await fixture.call(sshKeys.add, { public_key }, user);
    fixture.owner.members.push({ user_id: user.userId, team_id: team.team_id, role: 'member', is_suspended: false });
    const client = new ssh2.Client();
    client.connect({ host: '127.0.0.1', port: fixture.get(SshServer).port ?? 0, username: pod.pod_name, privateKey });
    await once(client, 'ready');
    const channel = await new Promise<ssh2.ClientChannel>((resolve, reject) => {
      client.exec('hostname', (error, opened) => (error ? reject(error) : resolve(opened)));
    });
    expect(await text(channel)).toBe(`${pod.pod_name}\n`);
    const closed = once(client, 'close');
    await fixture.call(sshKeys.remove, { ssh_key_id }, user);
    await closed;
    await stops(pod);
  });

  it('run beside simulated ones of another GPU service', async () => {
    const { subscription_id } = fixture.neighbours.subscription(team.team_id, team.workspace_id, 4, { gpuaas_id: '2' });
    const [real, simulated] = [await running(), await fixture.create(team, { subscription_id })];
    await comesTo(simulated, ({ status }) => status === 'running');
    expect(await containers()).toEqual([expect.stringContaining(real.pod_id)]);
    for (const pod of [real, simulated]) await stops(pod);
  });

  it('are not looked for on another engine that took the place of theirs, until the cluster is set again', async () => {
    const cluster = { ...fixture.neighbours.cluster({ gpuaas_id: '1' }), setting: 2, revision: 2 };
    await fixture.query(`UPDATE cluster SET identity = 'another', setting = 2, revision = 2 WHERE gpuaas_id = 1`);
    await expect(fixture.get(Clusters).driverOf('1')).rejects.toMatchObject({ code: 'another_cluster' });
    await fixture.tell(clusterChanged, { ...cluster, setting: 3, revision: 3 });
    expect(await fixture.get(Clusters).driverOf('1')).toBeDefined();
  });
});
