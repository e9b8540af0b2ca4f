import { describe, expect, it } from '@jest/globals';
import { boardNamed, boards } from './boards.js';

/**
 * From NVIDIA's mig-parted, `deployments/systemd/config-default.yaml`: what it calls the profiles, and how many of each
 * it cuts a GPU in.
 */
const namesByNvidia: Record<string, string> = {
  'A30-24GB': '1g.6gb×4 2g.12gb×2 4g.24gb×1',
  'A100-40GB': '1g.5gb×7 1g.10gb×4 2g.10gb×3 3g.20gb×2 4g.20gb×1 7g.40gb×1',
  'A100-80GB': '1g.10gb×7 1g.20gb×4 2g.20gb×3 3g.40gb×2 4g.40gb×1 7g.80gb×1',
  'H100-80GB': '1g.10gb×7 1g.20gb×4 2g.20gb×3 3g.40gb×2 4g.40gb×1 7g.80gb×1',
  'H100-NVL-94GB': '1g.12gb×7 1g.24gb×4 2g.24gb×3 3g.47gb×2 4g.47gb×1 7g.94gb×1',
  'GH200-96GB': '1g.12gb×7 1g.24gb×4 2g.24gb×3 3g.48gb×2 4g.48gb×1 7g.96gb×1',
  'GH200-144GB': '1g.18gb×7 1g.36gb×4 2g.36gb×3 3g.72gb×2 4g.72gb×1 7g.144gb×1',
  'H200-141GB': '1g.18gb×7 1g.35gb×4 2g.35gb×3 3g.71gb×2 4g.71gb×1 7g.141gb×1',
  'B200-180GB': '1g.23gb×7 1g.45gb×4 2g.45gb×3 3g.90gb×2 4g.90gb×1 7g.180gb×1',
  'RTX-PRO-6000-96GB': '1g.24gb×4 2g.48gb×2 4g.96gb×1',
  'L4-24GB': '',
  'L40S-48GB': '',
  'A40-48GB': '',
};

describe('boards', () => {
  it('are those with a table here, and no others', () => {
    expect(boards.map(({ name }) => name).toSorted()).toEqual(Object.keys(namesByNvidia).toSorted());
  });

  it.each(Object.entries(namesByNvidia))('%s has the profiles that NVIDIA calls: %s', (name, profiles) => {
    const text = boardNamed(name)?.migProfiles.map((profile) => `${profile.name}×${profile.starts.length}`);
    expect(text?.join(' ')).toBe(profiles);
  });

  it('have profiles that lie wholly on their memory slices, from small to large', () => {
    for (const { memorySlices, migProfiles } of boards) {
      expect(migProfiles.length > 0).toBe(memorySlices > 0);
      for (const { starts, size } of migProfiles) expect(Math.max(...starts) + size).toBeLessThanOrEqual(memorySlices);
      const sizes = migProfiles.map(({ size }) => size);
      expect(sizes).toEqual(sizes.toSorted((one, other) => one - other));
    }
  });

  it('have GB × 1024 MiB, but for the H100 of 80 GB', () => {
    const others = boards.filter(({ memoryGb, memoryMib }) => memoryMib !== memoryGb * 1024);
    expect(others.map(({ name, memoryMib }) => [name, memoryMib])).toEqual([['H100-80GB', 81_559]]);
  });

  it.each(['', 'A100', 'a100-80gb', '__proto__'])('there is none named "%s"', (name) => {
    expect(boardNamed(name)).toBeUndefined();
  });
});
