import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Exit } from '@atoll/cluster';
import { vms } from '@atoll/contracts/pods';
import fc from 'fast-check';
import { PodsFixture, type ToldTeam } from '../pods-fixture.js';
import { countsSince, endOfRun } from './end-of-run.js';
import { endUnseen } from './late-ends-fixture.js';

const ms = fc.integer({ min: 0, max: 10_000 });
const exitAt = (at: Date): Exit => ({ at, code: 1, reason: null, outOfMemory: 'no' });

it('a run is billed from when it was seen running until it ended, and never beyond when that was seen, by whatever clock', () => {
  fc.assert(
    fc.property(ms, ms, fc.option(ms), (seenRunning, seenFor, exitMs) => {
      const [from, to] = [new Date(seenRunning), new Date(seenRunning + seenFor)];
      const endedAt = endOfRun({ enteredAt: from }, exitMs === null ? null : exitAt(new Date(exitMs)));
      const until = countsSince('running', { enteredAt: to, endedAt });
      const wanted = exitMs === null ? to.getTime() : Math.max(from.getTime(), Math.min(exitMs, to.getTime()));
      expect(until.getTime()).toBe(wanted);
      // The end of a run counts once: what is done to a pod afterwards counts since then.
      for (const from of ['restarting', 'pulling']) expect(countsSince(from, { enteredAt: to, endedAt })).toEqual(to);
    }),
  );
});

describe('a run whose end is seen late', () => {
  let fixture: PodsFixture;
  let team: ToldTeam;
  beforeAll(async () => {
    // Longer than the specs: no run follows another.
    fixture = await PodsFixture.start({ restartMs: 300_000 });
    team = await fixture.team();
  });
  afterAll(() => fixture.stop());

  it('is followed by a back-off, in which a pod that is stopped is billed until then: its restarts are of one start', async () => {
    const pod = await fixture.running(team, { restart: 'always' });
    await endUnseen(fixture, { kind: 'pod', id: pod.pod_id, run: 1 });
    await fixture.untilIs(pod, ({ status }) => status === 'pending');
    const before = Date.now();
    await fixture.act(pod, 'stop', team);
    await fixture.until(pod, 'stopped');
    const [, end] = await fixture.usageOf(`pod:${pod.pod_id}`);
    expect(end?.quantity).toBe('0');
    expect(Date.parse(end?.time ?? '')).toBeGreaterThanOrEqual(before);
  });

  it('is billed until it ended, a pod as a VM', async () => {
    await fixture.call(vms.createFlavour, { name: 'small', vcpus: 1, memory_gb: 1 });
    const pod = await fixture.running(team, { restart: 'never' });
    const vm = await fixture.runningVm(team);
    const refs = [
      { kind: 'pod', id: pod.pod_id, run: 1 } as const,
      { kind: 'vm', id: vm.instance_id, run: 1 } as const,
    ];
    const ends = await Promise.all(refs.map((ref) => endUnseen(fixture, ref)));
    await fixture.until(pod, 'failed');
    await fixture.untilVm(vm, ({ status }) => status === 'failed');
    const billed = [await fixture.usageOf(`pod:${pod.pod_id}`), await fixture.usageOf(`vm:${vm.instance_id}`)];
    expect(billed.map((facts) => facts.map(({ quantity }) => quantity))).toEqual([
      ['1', '0'],
      ['1', '0'],
    ]);
    expect(billed.map((facts) => facts[1]?.time)).toEqual(ends.map((at) => at?.toISOString()));
  });
});
