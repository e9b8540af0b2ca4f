import { expect, it } from '@jest/globals';
import type { Capabilities } from '../cluster-driver.js';
import type { Volume } from '../objects.js';
import type { VolumeSight } from '../observations.js';
import { codeOf, eventually, ownerOf, soon, wanted, type Installation } from './cluster-under-test-fixture.js';

export function volumeLaws(here: () => Installation, capabilities: Capabilities): void {
  const observed = async ({ ref }: Volume) => {
    const [sight] = await here().driver.observeVolumes([ref], soon());
    return sight!;
  };

  it('makes a volume once, and grows it', async () => {
    const volume = here().volume();
    await Promise.all(Array.from({ length: 4 }, () => here().driver.makeVolume(volume, soon())));
    await here().driver.makeVolume({ ...volume, sizeGb: 2 }, soon());
    expect(await observed(volume)).toMatchObject({ phase: 'ready', sizeGb: capabilities.volumeQuota ? 2 : null });
    expect((await here().listed()).filter(({ id }) => id === volume.ref.id)).toEqual([volume.ref]);
    await here().remove(volume);
    expect(await observed(volume)).toEqual({ phase: 'absent' });
    await here().driver.remove(volume.ref, soon());
  });

  it('starts no pod with a volume that does not exist', async () => {
    const volumes = [{ volumeId: here().volumeRef().id, path: '/data' }];
    const pod = here().pod(here().programs.idle, { volumes });
    expect(await codeOf(here().driver.startPod(pod, wanted, soon()))).toBe('not_found');
    expect((await here().observePod(pod)).phase).toBe('absent');
    expect(await here().listed()).not.toContainEqual(expect.objectContaining({ id: volumes[0]!.volumeId }));
  });

  it('is not removed while a pod mounts it', async () => {
    const volume = here().volume();
    await here().driver.makeVolume(volume, soon());
    const pod = await here().startRunning(here().programs.idle, {
      owner: ownerOf(volume),
      volumes: [{ volumeId: volume.ref.id, path: '/data' }],
    });
    expect(await codeOf(here().driver.remove(volume.ref, soon()))).toBe('in_use');
    expect((await observed(volume)).phase).toBe('ready');
    await here().remove(pod, volume);
  });

  it('keeps what runs wrote, and says how many bytes are used', async () => {
    const { fills } = here().programs;
    if (!fills) return;
    const volume = here().volume();
    await here().driver.makeVolume(volume, soon());
    const [owner, volumes] = [ownerOf(volume), [{ volumeId: volume.ref.id, path: '/data' }]];
    const pod = await here().startRunning(fills('/data/file', 5_000_000), { owner, volumes });
    const used = () => eventually(async () => usedBytes(await observed(volume), 5_000_000));
    expect(await used()).toBeLessThan(6_000_000);
    await here().remove(pod);
    const next = await here().startRunning(fills('/data/other', 3_000_000), { owner, volumes });
    expect(await eventually(async () => usedBytes(await observed(volume), 8_000_000))).toBeLessThan(9_000_000);
    await here().remove(next, volume);
  });
}

function usedBytes(sight: VolumeSight, least: number): number | undefined {
  const used = sight.phase === 'ready' ? sight.usedBytes : null;
  return used !== null && used >= least ? used : undefined;
}
