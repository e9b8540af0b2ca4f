import { describe, expect, it } from '@jest/globals';
import { boardNamed, mpsProfile } from '@atoll/gpu';
import { decideInTurn, serve, type Wanted } from './admission.js';
import type { GpuRoom, PlacingRules } from '../sharing/plan.js';

const board = boardNamed('A100-80GB')!;
const half = mpsProfile(board, 2);
const rules: PlacingRules = {
  isTemporal: false,
  turns: 4,
  allowFallback: true,
  canSwitchUnderTenants: true,
  sold: [half],
};

describe('many requests for a large pool beside a queue', () => {
  const returning: GpuRoom = { gpuId: '1', state: 'to_spatial', slotsUsed: 0b01n, turnsUsed: 0b01n };
  const asking = (count: number, teamId: string): Wanted[] =>
    Array.from({ length: count }, () => ({ teamId, profile: half, vgpus: 1 }));

  it('look once at each GPU that is full, however many they are and wait', async () => {
    let looks = 0;
    const full = (gpuId: string): GpuRoom => ({
      gpuId,
      state: 'temporal',
      slotsUsed: 0n,
      get turnsUsed() {
        looks += 1;
        return 0b1111n;
      },
    });
    const gpus = [...Array.from({ length: 100 }, (_, at) => full(String(at + 2))), returning];
    const looksOf = async (requests: number): Promise<number> => {
      looks = 0;
      const asks = [{ teamId: 'theirs', profile: half, vgpus: 2 }, ...asking(requests, 'ours')];
      await decideInTurn({ gpus, waiting: asking(10, 'others') }, asks, rules);
      return looks;
    };
    expect(await looksOf(1)).toBeGreaterThanOrEqual(100);
    expect(await looksOf(50)).toBe(await looksOf(1));
  });

  it('that wait for a long time look no more often for each where 128 wait than where 64 do', async () => {
    const shares = 48;
    const profile = mpsProfile(board, shares);
    const used = (1n << 37n) - 1n;
    const looksOf = async (length: number): Promise<number> => {
      let looks = 0;
      const watched: GpuRoom = {
        gpuId: '0',
        nodeId: '0',
        state: 'spatial',
        isAvoided: true,
        get slotsUsed() {
          looks += 1;
          return used;
        },
        turnsUsed: 0n,
      };
      const gpus = Array.from({ length: length / 4 }, (_, at): GpuRoom => {
        const id = { gpuId: String(at + 1), nodeId: String(at + 1), turnsUsed: 0n };
        return at % 2 ? { ...id, state: 'to_spatial', slotsUsed: 0n } : { ...id, state: 'spatial', slotsUsed: used };
      });
      // Each second one needs a GPU that is on its way; for the others there is room.
      const waiting = Array.from({ length }, (_, at) => ({
        teamId: String(at),
        profile,
        vgpus: at % 2 ? 1 : 12,
        isOnOneNode: true,
      }));
      const kinds = (
        await serve(
          { gpus: [watched, ...gpus], waiting },
          { ...rules, allowFallback: false, turns: 0, sold: [profile] },
        )
      ).map(({ kind }) => kind);
      expect(kinds).toEqual(waiting.map((_, at) => (at % 2 ? 'lease' : 'wait')));
      return looks;
    };
    expect((await looksOf(128)) / 128).toBeLessThanOrEqual((await looksOf(64)) / 64);
  });

  it('leave the event loop to others between two of them', async () => {
    let isOver = false;
    let others = 0;
    const other = (): void => {
      others += 1;
      if (!isOver) setImmediate(other);
    };
    setImmediate(other);
    await decideInTurn({ gpus: [returning], waiting: asking(3, 'others') }, asking(40, 'ours'), rules);
    isOver = true;
    expect(others).toBeGreaterThanOrEqual(39);
  });
});
