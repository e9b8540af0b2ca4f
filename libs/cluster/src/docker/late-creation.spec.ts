import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { describeWhere, podmanLacks } from '@atoll/testing';
import { codeOf, eventually, Installation, ownerOf, soon, wanted } from '../contract/cluster-under-test-fixture.js';
import type { ObjectRef, PodRun } from '../objects.js';
import type { DockerDriver } from './docker-driver.js';
import { HeldEngine } from './held-engine-fixture.js';
import { Names } from './names.js';
import { startPodmanCluster, type PodmanCluster } from './podman-cluster-fixture.js';

describeWhere(podmanLacks(), 'a run that is stopped while another process creates its container', () => {
  let cluster: PodmanCluster;
  /** Of the process that stops it. */
  let here: Installation;
  let held: HeldEngine;
  /** Of the process that starts it: its creations wait. */
  let slow: DockerDriver;
  /** What the caller has decided, as each process reads it. */
  let isStopped: boolean;

  beforeAll(async () => void (cluster = await startPodmanCluster({ hasOwnNetwork: true })));
  afterAll(() => cluster?.stop());
  beforeEach(async () => {
    isStopped = false;
    here = new Installation(cluster);
    held = await HeldEngine.start(cluster.podman.socketPath, /^POST .*\/containers\/create\?name=[^&]*-(pod|door)-/);
    slow = cluster.open(here.id, { address: { socketPath: held.socketPath } });
  });
  afterEach(async () => {
    await slow.close();
    held.stop();
    await here.leave();
  });

  const isWanted = () => Promise.resolve(!isStopped);
  const containers = async ({ ref }: { ref: ObjectRef }) => {
    const name = new Names(here.id).of(ref);
    return (await cluster.podman.cli('ps', '--all', '--filter', `name=${name}`, '--format', '{{.State}}'))
      .trim()
      .toLowerCase();
  };
  /** As a caller does: it decides, stops, and goes on when the cluster shows nothing. */
  const stop = async (pod: PodRun) => {
    isStopped = true;
    await here.driver.stopPod(pod.ref, 0, soon());
    expect(await here.observePod(pod)).toEqual({ phase: 'absent' });
  };

  it('does not start when its container comes to be, and nothing of it is left', async () => {
    const pod = here.pod(here.programs.idle);
    const starting = slow.startPod(pod, isWanted, soon());
    const creation = await held.next();
    await stop(pod);
    expect(await creation.letThrough()).toBe(201);
    await starting;
    expect(await containers(pod)).toBe('');
  });

  it('is removed by the process that has given up to wait for its container', async () => {
    const pod = here.pod(here.programs.idle);
    const givingUp = new AbortController();
    const starting = codeOf(slow.startPod(pod, isWanted, givingUp.signal));
    const creation = await held.next();
    givingUp.abort();
    expect(await starting).toBe('timeout');
    await stop(pod);
    expect(await creation.letThrough()).toBe(201);
    await eventually(async () => ((await containers(pod)) === '' ? true : undefined));
  });

  it('has no log and goes when it is removed, where the process that created it is dead', async () => {
    const volume = here.volume();
    await here.driver.makeVolume(volume, soon());
    const volumes = [{ volumeId: volume.ref.id, path: '/data' }];
    const pod = here.pod(here.programs.idle, { owner: ownerOf(volume), volumes });
    const starting = codeOf(slow.startPod(pod, isWanted, soon()));
    const creation = await held.next();
    await slow.close();
    expect(await starting).toBe('timeout');
    await stop(pod);
    expect(await creation.letThrough()).toBe(201);
    expect(await containers(pod)).toBe('created');
    expect(await codeOf(here.driver.readLogs(pod.ref, null, soon())[Symbol.asyncIterator]().next())).toBe('not_found');
    await here.remove(pod, volume);
    expect(await containers(pod)).toBe('');
  });

  it('does not start where it was stopped between the two: what is there when it is stopped goes, and is not created anew', async () => {
    const pod = here.pod(here.programs.idle);
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<boolean>();
    const starting = slow.startPod(pod, () => (asked.resolve(), answer.promise), soon());
    await (await held.next()).letThrough();
    await asked.promise;
    await stop(pod);
    // Read before it was stopped, and heard after.
    answer.resolve(true);
    expect(await codeOf(starting)).toBe('not_found');
    expect(await containers(pod)).toBe('');
  });

  it('goes on where it is wanted still: the next request starts what an earlier one has created', async () => {
    const pod = here.pod(here.programs.idle);
    const givingUp = new AbortController();
    const starting = codeOf(slow.startPod(pod, isWanted, givingUp.signal));
    const creation = await held.next();
    givingUp.abort();
    await starting;
    expect(await creation.letThrough()).toBe(201);
    expect(await containers(pod)).toBe('created');
    await here.driver.startPod(pod, wanted, soon());
    expect((await here.observePod(pod)).phase).toBe('running');
  });

  it('is a door likewise: its removal waits for its creation, which Podman would leave half done', async () => {
    const door = here.door(here.pod(here.programs.idle), 20_000);
    const givingUp = new AbortController();
    const opening = codeOf(slow.openDoor(door, givingUp.signal));
    const creation = await held.next();
    givingUp.abort();
    expect(await opening).toBe('timeout');
    const removing = slow.remove(door.ref, soon());
    expect(await creation.letThrough()).toBe(201);
    await removing;
    expect(await containers(door)).toBe('');
  });
});
