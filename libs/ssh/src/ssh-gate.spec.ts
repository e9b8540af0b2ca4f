import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { SshGate } from './ssh-gate.js';

const never = new AbortController().signal;
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('the gate of SSH connections', () => {
  it('law: never more than its bound at once, never two to one host, and everybody gets through', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(fc.nat(3), { maxLength: 30 }), async (bound, hosts) => {
        const gate = new SshGate(bound, 60_000);
        const inside = new Map<string, number>();
        const done: number[] = [];
        const visit = (host: string, at: number) =>
          gate.pass(host, never, async () => {
            inside.set(host, (inside.get(host) ?? 0) + 1);
            expect(Math.max(...inside.values())).toBe(1);
            expect([...inside.values()].reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(bound);
            await turn();
            inside.set(host, 0);
            done.push(at);
          });
        await Promise.all(hosts.map((host, at) => visit(`host-${host}`, at)));
        expect(done.toSorted((one, other) => one - other)).toEqual(hosts.map((_, at) => at));
        for (const host of new Set(hosts)) {
          const ofHost = done.filter((at) => hosts[at] === host);
          expect(ofHost).toEqual(ofHost.toSorted((one, other) => one - other));
        }
      }),
    );
  });

  it('lets others past those who wait for a host that is taken', async () => {
    const gate = new SshGate(2, 60_000);
    let leave: () => void = () => undefined;
    const held = gate.pass('slow', never, () => new Promise<void>((resolve) => (leave = resolve)));
    const waiting = gate.pass('slow', never, () => Promise.resolve('second'));
    expect(await gate.pass('quick', never, () => Promise.resolve('past'))).toBe('past');
    leave();
    await held;
    expect(await waiting).toBe('second');
  });

  it('forgets who gave up, and frees a host whose work failed', async () => {
    const gate = new SshGate(1, 60_000);
    let leave: () => void = () => undefined;
    const held = gate.pass('a', never, () => new Promise<void>((resolve) => (leave = resolve)));
    const giving = new AbortController();
    const gone = gate.pass('a', giving.signal, () => Promise.reject(new Error('it ran')));
    giving.abort();
    await expect(gone).rejects.toMatchObject({ kind: 'crowded' });
    const hasty = new SshGate(1, 50);
    let leaveSlow: () => void = () => undefined;
    const slow = hasty.pass('a', never, () => new Promise<void>((resolve) => (leaveSlow = resolve)));
    await expect(hasty.pass('b', never, () => Promise.reject(new Error('it ran')))).rejects.toMatchObject({
      kind: 'crowded',
    });
    leaveSlow();
    await slow;
    leave();
    await held;
    await expect(gate.pass('a', never, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect(await gate.pass('a', never, () => Promise.resolve('free'))).toBe('free');
  });
});
