import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import {
  ClusterError,
  openDocker,
  type ClusterDriver,
  type Door,
  type ObjectRef,
  type PodRun,
  type VolumeRef,
} from '@atoll/cluster';
import { exposedServices, pods, vms } from '@atoll/contracts/pods';
import {
  describeWhere,
  freePort,
  podmanImage,
  podmanLacks,
  startPodman,
  timeoutFactor,
  type Podman,
} from '@atoll/testing';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { PodsSettings } from '../pods-settings.js';
import { Clusters } from './clusters.js';
import { Orphans } from './orphans.js';

const soon = () => AbortSignal.timeout(30_000 * timeoutFactor);
const wanted = () => Promise.resolve(true);
const owner = { teamId: randomUUID(), workspaceId: randomUUID() };
const command = ['bash', '-c', 'trap "exit 0" TERM; sleep infinity & wait'];
const rest = {
  env: new Map<string, string>(),
  cpu: null,
  memoryGb: 0.2,
  slices: [],
  volumes: [],
  requestedAt: new Date(),
  command,
};
/** A run of a pod of which the database knows nothing. */
const stray = (more: Partial<PodRun> = {}): PodRun => {
  const id = randomUUID();
  return {
    ref: { kind: 'pod', id, run: 1 },
    owner,
    podName: `stray-${id.slice(0, 5)}`,
    image: podmanImage,
    ...rest,
    ...more,
  };
};
const strayDoor = (podId: string, externalPort: number): Door => ({
  ref: { kind: 'door', id: 'svc-987654', run: 1 },
  owner,
  podId,
  transport: 'tcp',
  port: 8080,
  externalPort,
  tls: null,
});
const idsOn = async (driver: ClusterDriver) => {
  const found: ObjectRef[] = [];
  for await (const { ref } of driver.list(soon())) found.push(ref);
  return found.map(({ kind, id, run }) => `${kind} ${id} ${run}`).toSorted();
};
/** What an engine refuses for now, as where others change the firewall of the host: it is asked again. */
const mayPass = (error: unknown): void => {
  if (!(error instanceof ClusterError) || error.isPermanent) throw error;
};
const requested = async (driver: ClusterDriver, pod: PodRun) => {
  for (;;) {
    await driver.startPod(pod, wanted, soon()).catch(mayPass);
    const [sight] = await driver.observePods([pod.ref], soon());
    if (sight?.phase === 'running') return `pod ${pod.ref.id} ${pod.ref.run}`;
  }
};

describe('what a simulated cluster has and no row needs', () => {
  let fixture: PodsFixture;
  let team: ToldTeam;
  let driver: ClusterDriver;
  let settings: PodsSettings;
  beforeAll(async () => {
    fixture = await PodsFixture.start();
    team = await fixture.team('member', 20);
    driver = await fixture.get(Clusters).driverOf('1');
    settings = fixture.get(PodsSettings);
  });
  afterAll(() => fixture.stop());
  const look = () => fixture.get(Orphans).look('1');

  it('is removed after its grace and not before; what rows need stays', async () => {
    const pod = await fixture.running(team);
    const terms = { pod_name: pod.pod_name, service_name: 'web', port: 80, protocol: 'HTTP' as const };
    const exposed = await fixture.call(exposedServices.expose, terms, team.member);
    await fixture.untilExposed(exposed, ({ status }) => status === 'active');
    const volume = await fixture.createVolume(team);
    await fixture.untilVolume(volume, ({ status }) => status === 'active');
    const needed = await idsOn(driver);
    expect(needed).toHaveLength(3);
    const strays = [
      await requested(driver, stray()),
      await requested(driver, stray({ ref: { kind: 'pod', id: pod.pod_id, run: 7 } })),
    ];
    await driver.openDoor(strayDoor(pod.pod_id, await freePort()), soon());
    const all = [...needed, ...strays, 'door svc-987654 1'].toSorted();
    expect([await look(), await idsOn(driver)]).toEqual([0, all]);
    await fixture.query(`UPDATE orphan SET found_at = found_at - interval '9 minutes'`);
    expect([await look(), await idsOn(driver)]).toEqual([0, all]);
    await fixture.query(`UPDATE orphan SET found_at = found_at - interval '1 minute'`);
    expect(await look()).toBe(3);
    while ((await idsOn(driver)).length > needed.length) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await idsOn(driver)).toEqual(needed);
    await look();
    expect(await fixture.query('SELECT FROM orphan')).toEqual([]);
  });

  it('is a volume only where its row says that it is deleted', async () => {
    const before = await idsOn(driver);
    const kept = await fixture.createVolume(team);
    await fixture.untilVolume(kept, ({ status }) => status === 'active');
    const unknown: VolumeRef = { kind: 'volume', id: '987654', run: 0, teamId: owner.teamId };
    await driver.makeVolume({ ref: unknown, workspaceId: owner.workspaceId, sizeGb: 1 }, soon());
    settings.orphanGraceMs = 0;
    expect(await look()).toBe(0);
    await fixture.query(`UPDATE shared_volume SET state = 'deleted' WHERE volume_id = $1`, [kept.volume_id]);
    expect(await look()).toBe(1);
    settings.orphanGraceMs = 600_000;
    await driver.remove(unknown, soon());
    expect(await idsOn(driver)).toEqual(before);
  });

  it('is not the volume that another team had under the number of a deleted row, before the database was restored', async () => {
    const volume = await fixture.createVolume(team);
    await fixture.untilVolume(volume, ({ status }) => status === 'active');
    await fixture.query(`UPDATE shared_volume SET state = 'deleted' WHERE volume_id = $1`, [volume.volume_id]);
    const theirs: VolumeRef = { kind: 'volume', id: volume.volume_id, run: 0, teamId: owner.teamId };
    const ours = { ...theirs, teamId: team.team_id };
    const named = (ref: VolumeRef) => driver.makeVolume({ ref, workspaceId: owner.workspaceId, sizeGb: 1 }, soon());
    settings.orphanGraceMs = 0;
    await named(theirs);
    expect(await look()).toBe(0);
    await named(ours);
    expect(await look()).toBe(1);
    settings.orphanGraceMs = 600_000;
  });

  it('is a door under the number of an exposed service which that service has not opened', async () => {
    const pod = await fixture.running(team);
    const terms = { pod_name: pod.pod_name, service_name: 'web', port: 80, protocol: 'HTTP' as const };
    const exposed = await fixture.call(exposedServices.expose, terms, team.member);
    await fixture.untilExposed(exposed, ({ status }) => status === 'active');
    const left = {
      ...strayDoor(randomUUID(), await freePort()),
      ref: { kind: 'door' as const, id: `svc-${exposed.service_id}`, run: 7 },
    };
    await driver.openDoor(left, soon());
    settings.orphanGraceMs = 0;
    expect(await look()).toBe(1);
    settings.orphanGraceMs = 600_000;
    while ((await idsOn(driver)).includes(`door ${left.ref.id} 7`))
      await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await idsOn(driver)).toContain(`door ${left.ref.id} 1`);
    // That of an update is opened beside the present one.
    await driver.openDoor({ ...left, ref: { ...left.ref, run: 2 } }, soon());
    settings.orphanGraceMs = 0;
    expect(await look()).toBe(0);
    settings.orphanGraceMs = 600_000;
  });

  it('is a VM only where its row says that it is deleted', async () => {
    await fixture.call(vms.createFlavour, { name: 'small', vcpus: 1, memory_gb: 1 });
    const vm = await fixture.runningVm(team);
    settings.orphanGraceMs = 0;
    expect(await look()).toBe(0);
    await fixture.query(`UPDATE vm SET state = 'deleted' WHERE instance_id = $1`, [vm.instance_id]);
    expect(await look()).toBe(1);
    settings.orphanGraceMs = 600_000;
    expect((await idsOn(driver)).filter((id) => id.startsWith('vm '))).toEqual([]);
  });

  it('stays where it is more than may go at once', async () => {
    settings.orphanGraceMs = 0;
    settings.orphansAtOnce = 2;
    const strays = [
      await requested(driver, stray()),
      await requested(driver, stray()),
      await requested(driver, stray()),
    ];
    expect(await look()).toBe(0);
    expect(await idsOn(driver)).toEqual(expect.arrayContaining(strays));
    settings.orphansAtOnce = 3;
    expect(await look()).toBe(3);
    expect(await idsOn(driver)).not.toEqual(expect.arrayContaining([strays[0]]));
    settings.orphanGraceMs = 600_000;
    settings.orphansAtOnce = 20;
  });

  it('is a container that came to be when its pod had been stopped and its run was forgotten', async () => {
    const pod = await fixture.running(team);
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    await fixture.query('DELETE FROM orphan');
    settings.orphanGraceMs = 0;
    expect(await look()).toBe(0);
    await fixture.query('DELETE FROM pod_run WHERE pod_id = $1', [pod.pod_id]);
    expect(await look()).toBe(1);
    settings.orphanGraceMs = 600_000;
  });

  it('is not the run of a pod that was deleted while its log is not read yet', async () => {
    const pod = await fixture.running(team);
    await fixture.call(pods.delete, { pod_name: pod.pod_name }, team.member);
    await fixture.untilDeleted(pod);
    await fixture.query('DELETE FROM orphan');
    settings.orphanGraceMs = 0;
    expect(await look()).toBe(0);
    await fixture.query('DELETE FROM pod_run WHERE pod_id = $1', [pod.pod_id]);
    expect(await look()).toBe(1);
    settings.orphanGraceMs = 600_000;
  });
});

describeWhere(podmanLacks(), 'what a container engine has and no row needs', () => {
  let podman: Podman;
  let fixture: PodsFixture;
  beforeAll(async () => {
    podman = await startPodman();
    fixture = await PodsFixture.start();
    fixture.neighbours.clusters.set('1', { driver: 'docker', socket: podman.socketPath, door_image: podmanImage });
  });
  afterAll(async () => {
    await fixture?.stop();
    await podman?.stop();
  });

  it('is, where it was created and never started, removed at the next look', async () => {
    const driver = await fixture.get(Clusters).driverOf('1');
    const [died, left, started] = [new Error('The process is dead.'), stray(), stray()];
    await requested(driver, started);
    for (let isLeft = false; !isLeft;) {
      await driver.startPod(left, () => Promise.reject(died), soon()).catch(() => undefined);
      isLeft = (await idsOn(driver)).length === 2;
    }
    const look = () => fixture.get(Orphans).look('1');
    expect([await look(), await look()]).toEqual([0, 0]);
    await fixture.query(`UPDATE orphan SET found_at = found_at - interval '1 minute'`);
    expect(await look()).toBe(1);
    expect(await idsOn(driver)).toEqual([`pod ${started.ref.id} 1`]);
    await driver.remove(started.ref, soon());
  });

  it('is removed with its door, and nothing of another installation or of nobody', async () => {
    const driver = await fixture.get(Clusters).driverOf('1');
    const other = openDocker(
      { socket: podman.socketPath, doorImage: podmanImage },
      'another-installation',
      '127.0.0.1',
    );
    const orphan = stray();
    await requested(driver, orphan);
    await requested(other, stray());
    const door = strayDoor(orphan.ref.id, await freePort());
    for (let isOpen = false; !isOpen;) {
      await driver.openDoor(door, soon()).catch(mayPass);
      const [sight] = await driver.observeDoors([door.ref], soon());
      isOpen = sight?.phase === 'open';
    }
    // In no network: what the service starts meanwhile changes the same chains of the firewall, where Podman stumbles.
    await podman.cli('run', '--detach', '--network', 'none', '--name', 'by-hand', podmanImage, 'sleep', 'infinity');
    fixture.get(PodsSettings).orphanGraceMs = 0;
    expect(await fixture.get(Orphans).look('1')).toBe(2);
    while ((await idsOn(driver)).length > 0) await fixture.get(Orphans).look('1');
    const left = (await podman.cli('ps', '--format', '{{.Names}}'))
      .split('\n')
      .filter((name) => name && !name.includes('-keeper-'));
    expect(left.toSorted()).toEqual([expect.stringContaining('another-installation'), 'by-hand']);
    await other.close();
  });
});
