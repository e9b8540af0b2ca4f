import { setTimeout as delay } from 'node:timers/promises';
import type { RunSight } from '@atoll/cluster';
import type { UsageTold } from '@atoll/contracts/billing';
import type { RunOf } from '../cluster/runs.js';
import type { PodsFixture } from '../pods-fixture.js';

/** From and until, as ISO 8601; null: it is held still. */
export type Span = [from: string, until: string | null];

async function sightOf(fixture: PodsFixture, ref: RunOf): Promise<RunSight | undefined> {
  const driver = await fixture.simulated.driverOf('1');
  const { signal } = new AbortController();
  const [sight] = await (ref.kind === 'pod' ? driver.observePods([ref], signal) : driver.observeVms([ref], signal));
  return sight;
}

/**
 * Ends a run behind the back of the service. When that was, as the cluster says; undefined where it does not run.
 */
export async function endUnseen(fixture: PodsFixture, ref: RunOf): Promise<Date | undefined> {
  if ((await sightOf(fixture, ref))?.phase !== 'running') return undefined;
  const driver = await fixture.simulated.driverOf('1');
  const { signal } = new AbortController();
  await (ref.kind === 'pod' ? driver.stopPod(ref, 0, signal) : driver.stopVm(ref, 0, signal));
  for (;;) {
    const sight = await sightOf(fixture, ref);
    // What is requested now is of a later millisecond.
    await delay(2);
    if (sight?.phase === 'ended') return sight.exit.at;
  }
}

/** The time for which facts of one resource bill it, by the rule of billing: at one instant the last in order holds. */
export function billed(facts: UsageTold['facts']): Span[] {
  const inOrder = facts.toSorted(
    (one, other) =>
      one.time.localeCompare(other.time) || (one.sequence ?? 0) - (other.sequence ?? 0) || (one.id < other.id ? -1 : 1),
  );
  const steps = inOrder.filter(({ time }, at) => inOrder[at + 1]?.time !== time);
  const spans: Span[] = [];
  for (const { time, quantity } of steps) {
    const open = spans.at(-1)?.[1] === null ? spans.at(-1) : undefined;
    if (quantity === '0') open?.splice(1, 1, time);
    else if (!open) spans.push([time, null]);
  }
  return spans;
}
