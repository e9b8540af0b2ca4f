import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { describeWhere, podmanImage, podmanLacks } from '@atoll/testing';
import { Installation, soon } from '../contract/cluster-under-test-fixture.js';
import type { PodRun } from '../objects.js';
import { leaveHalfRemoved, loseStorage } from './half-removed-fixture.js';
import { Names } from './names.js';
import { startPodmanCluster, type PodmanCluster } from './podman-cluster-fixture.js';

describeWhere(podmanLacks(), 'what a Podman has left that was killed while it removed a container', () => {
  let cluster: PodmanCluster;
  let here: Installation;
  beforeAll(async () => {
    cluster = await startPodmanCluster({ hasOwnNetwork: true });
    here = new Installation(cluster);
  });
  afterAll(async () => {
    await here?.leave();
    await cluster?.stop();
  });

  const nameOf = ({ ref }: PodRun) => new Names(here.id).of(ref);
  const stateOf = async (pod: PodRun) =>
    (await cluster.podman.cli('ps', '--all', '--filter', `name=${nameOf(pod)}`, '--format', '{{.State}}')).trim();
  const halfRemoved = async (more: Partial<PodRun> = {}) => {
    for (;;) {
      const pod = await here.startRunning(here.programs.idle, more);
      if (await leaveHalfRemoved(cluster.podman, nameOf(pod), () => here.driver.remove(pod.ref, soon()))) return pod;
    }
  };

  it('is removed by whoever lists containers, and prevents no list', async () => {
    const other = await here.startRunning(here.programs.idle);
    const left = await halfRemoved();
    expect(await here.listed()).toEqual([other.ref]);
    expect(await stateOf(left)).toBe('');
    await here.remove(other);
  });

  it('is removed where a removal by name met its creation, which leaves it as created', async () => {
    const other = await here.startRunning(here.programs.idle);
    const pod = here.pod(here.programs.idle);
    const labels = Object.entries(new Names(here.id).podLabels(pod)).flatMap((pair) => ['--label', pair.join('=')]);
    const created = await cluster.podman.cli('create', '--name', nameOf(pod), ...labels, podmanImage, 'true');
    await loseStorage(cluster.podman, created.trim());
    expect(await stateOf(pod)).toBe('Created');
    expect(await here.listed()).toEqual([other.ref]);
    expect(await stateOf(pod)).toBe('');
    await here.remove(other);
  });

  it('prevents no removal of another pod of its workspace', async () => {
    const other = await here.startRunning(here.programs.idle);
    await halfRemoved({ owner: other.owner });
    await here.driver.remove(other.ref, soon());
    expect(await here.listed()).toEqual([]);
  });

  it('is left alone by another installation, whose lists it does not prevent', async () => {
    const left = await halfRemoved();
    const neighbour = new Installation(cluster);
    const pod = await neighbour.startRunning(neighbour.programs.idle);
    expect(await neighbour.listed()).toEqual([pod.ref]);
    expect(await stateOf(left)).toBe('Removing');
    await neighbour.leave();
  });
});
