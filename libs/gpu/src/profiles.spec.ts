import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { boardNamed, boards, type Board } from './boards.js';
import { maxReplicas, minReplicas, mpsProfile, timeSliceProfile, vRamGb } from './profiles.js';

function known(name: string): Board {
  const board = boardNamed(name);
  if (!board) throw new Error(`There should be a board ${name}.`);
  return board;
}

describe('GB of a slice', () => {
  it.each([
    ['H100-NVL-94GB', '1g.12gb', 12], // 11.75
    ['H100-NVL-94GB', '1g.24gb', 24], // 23.5: half to even would be 24 too
    ['H100-NVL-94GB', '3g.47gb', 47],
    ['B200-180GB', '1g.23gb', 23], // 22.5: half to even would be 22
    ['H200-141GB', '2g.35gb', 35], // 35.25
    ['H200-141GB', '4g.71gb', 71], // 70.5: half to even would be 70
    ['H100-80GB', '1g.10gb', 10],
    ['H100-80GB', 'mps-2', 39.82], // 40,779 MiB
    ['H100-80GB', 'mps-3', 26.55], // 27,186 MiB
    ['H100-80GB', 'ts-7', 11.38], // 11,651 MiB
    ['A100-80GB', 'mps-48', 1.67], // 1,706 MiB
    ['A30-24GB', 'ts-48', 0.5],
    ['L4-24GB', 'mps-10', 2.4], // 2,457 MiB
  ])('of %s, %s, is %d', (board, profile, gb) => {
    expect(vRamGb(known(board), profile)).toBe(gb);
  });

  it('law: of MIG it is the number in the name, k/n of the board rounded half up', () => {
    for (const board of boards) {
      for (const { name, size } of board.migProfiles) {
        const twice = 2 * board.memoryGb * size;
        const halfUp = Number((BigInt(twice) / BigInt(board.memorySlices) + 1n) / 2n);
        expect([name, vRamGb(board, name)]).toEqual([`${name.split('.')[0]}.${halfUp}gb`, halfUp]);
      }
    }
  });

  it('law: of a share or a turn it is floor(MiB / n) MiB in GB to two decimals, the same for both', () => {
    fc.assert(
      fc.property(fc.constantFrom(...boards), fc.integer({ min: minReplicas, max: maxReplicas }), (board, replicas) => {
        const mib = (board.memoryMib - (board.memoryMib % replicas)) / replicas;
        const gb = vRamGb(board, `mps-${replicas}`);
        // In whole hundredths, half up.
        expect(Math.round(gb * 100)).toBe(Number((BigInt(mib) * 200n + 1024n) / 2048n));
        expect(String(gb)).toMatch(/^\d+(\.\d\d?)?$/);
        expect(vRamGb(board, `ts-${replicas}`)).toBe(gb);
      }),
    );
  });

  it.each([
    ['A100-80GB', '1g.5gb'],
    ['A100-80GB', ''],
    ['A100-80GB', 'mps-1'],
    ['A100-80GB', 'mps-49'],
    ['A100-80GB', 'ts-08'],
    ['A100-80GB', 'ts-2.5'],
    ['A100-80GB', 'mps-2 '],
    ['L40S-48GB', '1g.6gb'],
  ])('is a RangeError for %s and "%s", which it has not', (board, profile) => {
    expect(() => vRamGb(known(board), profile)).toThrow(RangeError);
  });
});

describe('shares and turns', () => {
  it('are one slot each, as many as there are replicas', () => {
    expect(mpsProfile(known('A100-80GB'), 4)).toEqual({ name: 'mps-4', size: 1, starts: [0, 1, 2, 3], vRamGb: 20 });
    expect(timeSliceProfile(known('A100-80GB'), 2)).toEqual({ name: 'ts-2', size: 1, starts: [0, 1], vRamGb: 40 });
  });

  it.each([0, 1, 49, -2, 2.5, Number.NaN, 1e9])('are never %d of a GPU', (replicas) => {
    for (const profileOf of [mpsProfile, timeSliceProfile])
      expect(() => profileOf(known('A100-80GB'), replicas)).toThrow(RangeError);
  });
});
