import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort, runs, timeoutFactor } from '@atoll/testing';
import type { ClusterDriver } from '../cluster-driver.js';
import type { Door, PodRun, Volume } from '../objects.js';
import { greeting, untilClosed } from './doors-fixture.js';
import { eventually, ownerOf, soon, wanted, type Installation, type Lack } from './cluster-under-test-fixture.js';

interface Wanted {
  readonly volume: Volume;
  readonly pod: PodRun;
  readonly door: Door;
}

interface Crash {
  readonly afterMs: number;
  /** What answers to drivers is killed too, not the process of the driver alone. */
  readonly ofCluster: boolean;
}

const crashesMs = 300_000 * timeoutFactor;
const crashes = fc.array(fc.record({ afterMs: fc.nat(400), ofCluster: fc.boolean() }), { minLength: 1, maxLength: 3 });

export function crashLaws(here: () => Installation, lacks: readonly Lack[]): void {
  it(
    'law: whatever crashes at whatever moment, requesting and observing come to the same end',
    async () => {
      await fc.assert(
        fc.asyncProperty(crashes, crashes, async (whileStarting, whileRemoving) => {
          const wanted = await prepare(here());
          await until(here(), whileStarting, lacks, (driver) => request(driver, wanted));
          const refs = [wanted.volume, wanted.pod, wanted.door].map(({ ref }) => ref);
          expect(sorted(await here().listed())).toEqual(sorted(refs));
          const { publicHost } = here().cluster;
          expect(await eventually(() => greeting(publicHost, wanted.door.externalPort))).toBe(wanted.pod.podName);

          await until(here(), whileRemoving, lacks, (driver) => release(driver, wanted));
          expect(await here().listed()).toEqual([]);
          await untilClosed(publicHost, wanted.door.externalPort);
        }),
        // What a failure leaves behind would fail each smaller example too, and hide the first.
        { ...runs(3), endOnFailure: true },
      );
      // A dozen restarts of the engine.
    },
    crashesMs,
  );
}

async function prepare(here: Installation): Promise<Wanted> {
  const volume = here.volume();
  const pod = here.pod(here.programs.serves, {
    owner: ownerOf(volume),
    volumes: [{ volumeId: volume.ref.id, path: '/data' }],
  });
  return { volume, pod, door: here.door(pod, await freePort()) };
}

/** One round of a caller: requests what differs from what it observes. Whether nothing does. */
async function request(driver: ClusterDriver, { volume, pod, door }: Wanted): Promise<boolean> {
  const [volumeSight] = await driver.observeVolumes([volume.ref], soon());
  if (volumeSight?.phase !== 'ready') await driver.makeVolume(volume, soon());
  const [podSight] = await driver.observePods([pod.ref], soon());
  if (podSight?.phase !== 'running') await driver.startPod(pod, wanted, soon());
  const [doorSight] = await driver.observeDoors([door.ref], soon());
  if (doorSight?.phase !== 'open') await driver.openDoor(door, soon());
  return volumeSight?.phase === 'ready' && podSight?.phase === 'running' && doorSight?.phase === 'open';
}

async function release(driver: ClusterDriver, { volume, pod, door }: Wanted): Promise<boolean> {
  for (const { ref } of [door, pod, volume]) await driver.remove(ref, soon());
  for await (const found of driver.list(soon())) if (found) return false;
  return true;
}

/** Rounds of a caller that crashes at these moments, then of one that does not. */
async function until(
  here: Installation,
  planned: readonly Crash[],
  lacks: readonly Lack[],
  round: (driver: ClusterDriver) => Promise<boolean>,
): Promise<void> {
  for (const { afterMs, ofCluster } of planned) {
    const { driver } = here;
    let isOver = false;
    const process = (async () => {
      while (!isOver) await round(driver);
    })().catch(() => undefined);
    await delay(afterMs);
    isOver = true;
    if (ofCluster && lacks.includes('cut requests')) await process;
    await Promise.all([here.restart(), ofCluster && here.cluster.crash()]);
    await process;
  }
  await eventually(async () => ((await round(here.driver)) ? true : undefined));
}

const sorted = (refs: readonly { id: string }[]) => [...refs].sort((one, other) => one.id.localeCompare(other.id));
