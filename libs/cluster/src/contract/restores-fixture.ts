import { expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { freePort } from '@atoll/testing';
import type { Capabilities } from '../cluster-driver.js';
import type { Door, Volume } from '../objects.js';
import { accepts, greeting } from './doors-fixture.js';
import { codeOf, eventually, ownerOf, soon, wanted, type Installation } from './cluster-under-test-fixture.js';

/**
 * A database that is restored from a backup gives the numbers again that it gave after it, while the objects under
 * these numbers stay.
 */
export function restoreLaws(here: () => Installation, capabilities: Capabilities): void {
  doorLaws(here);
  if (capabilities.volumes) volumeLaws(here);
}

function volumeLaws(here: () => Installation): void {
  const phases = async (...volumes: readonly Volume[]) => {
    const refs = volumes.map(({ ref }) => ref);
    return (await here().driver.observeVolumes(refs, soon())).map(({ phase }) => phase);
  };
  const sameNumber = ({ ref }: Volume) => here().volume({ ref: { ...ref, teamId: randomUUID() } });
  const usedBytes = (volume: Volume, least: number) =>
    eventually(async () => {
      const [sight] = await here().driver.observeVolumes([volume.ref], soon());
      const used = sight?.phase === 'ready' ? sight.usedBytes : null;
      return used !== null && used >= least ? used : undefined;
    });
  const filled = (volume: Volume, bytes: number) => {
    const volumes = [{ volumeId: volume.ref.id, path: '/data' }];
    return here().startRunning(here().programs.fills!(`/data/of-${volume.ref.teamId}`, bytes), {
      owner: ownerOf(volume),
      volumes,
    });
  };

  it('gives a team a volume of its own where another team has one under the same number', async () => {
    if (!here().programs.fills) return;
    const theirs = here().volume();
    await here().driver.makeVolume(theirs, soon());
    const writer = await filled(theirs, 5_000_000);
    await usedBytes(theirs, 5_000_000);
    const ours = sameNumber(theirs);
    expect(await phases(theirs, ours)).toEqual(['ready', 'absent']);
    await Promise.all(Array.from({ length: 4 }, () => here().driver.makeVolume(ours, soon())));
    await here().restart();
    await here().driver.makeVolume(ours, soon());
    expect(await phases(theirs, ours)).toEqual(['ready', 'ready']);
    const listed = (await here().listed()).filter(({ id }) => id === ours.ref.id);
    expect(new Set(listed)).toEqual(new Set([theirs.ref, ours.ref]));
    const other = await filled(ours, 3_000_000);
    expect(await usedBytes(ours, 3_000_000)).toBeLessThan(4_000_000);
    expect(await usedBytes(theirs, 5_000_000)).toBeLessThan(6_000_000);
    await here().remove(writer, other, ours);
    expect(await phases(theirs, ours)).toEqual(['ready', 'absent']);
    await here().remove(theirs);
  });

  it('neither mounts nor removes the volume of another team for its number', async () => {
    const theirs = here().volume();
    await here().driver.makeVolume(theirs, soon());
    const ours = sameNumber(theirs);
    const pod = here().pod(here().programs.idle, {
      owner: ownerOf(ours),
      volumes: [{ volumeId: ours.ref.id, path: '/data' }],
    });
    const refused = eventually(() => codeOf(here().driver.startPod(pod, wanted, soon())).catch(() => undefined));
    expect(await refused).toBe('not_found');
    await here().driver.remove(ours.ref, soon());
    expect(await phases(theirs, ours)).toEqual(['ready', 'absent']);
    await here().remove(theirs);
  });
}

function doorLaws(here: () => Installation): void {
  const host = () => here().cluster.publicHost;

  it('opens a door where one of the same number leads to a pod of another team', async () => {
    const [theirs, ours] = [
      await here().startRunning(here().programs.serves),
      await here().startRunning(here().programs.serves),
    ];
    const left = await here().open(here().door(theirs, await freePort()));
    const door = await here().open(here().door(ours, await freePort(), { ref: left.ref }));
    expect(await eventually(() => greeting(host(), door.externalPort))).toBe(ours.podName);
    expect(await accepts(host(), left.externalPort)).toBe(false);
    await here().remove(door, theirs, ours);
  });

  it('opens a door where one of the same number leads elsewhere in the workspace', async () => {
    const pod = await here().startRunning(here().programs.serves);
    const other = await here().startRunning(here().programs.serves, { owner: pod.owner });
    const ports = [await freePort(), await freePort()] as const;
    const { ref } = await here().open(here().door(pod, ports[0]));
    const turns: readonly Partial<Door>[] = [{}, { externalPort: ports[1] }, { externalPort: ports[1], port: 8081 }];
    const expected = [other.podName, other.podName, undefined];
    for (const [at, more] of turns.entries()) {
      const door = await here().open(here().door(other, ports[0], { ref, ...more }));
      const reached = () => greeting(host(), door.externalPort);
      expect(expected[at] === undefined ? await reached() : await eventually(reached)).toBe(expected[at]);
    }
    await here().remove({ ref }, pod, other);
  });
}
