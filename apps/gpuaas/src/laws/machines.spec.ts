import { describe, expect, it } from '@jest/globals';
import type { MachineDefinition } from '@atoll/state-machine';
import { gpuMachine } from '../gpus/gpu.machine.js';
import { nodeMachine } from '../nodes/node.machine.js';
import { subscriptionMachine } from '../subscriptions/subscription.machine.js';
import { workloadMachine } from '../workloads/workload.machine.js';

/** From each state of a machine: whether it can be left for good, where nobody sends anything any more. */
function endsOf(definition: MachineDefinition): Map<string, string[]> {
  const ends = new Map<string, string[]>();
  for (const state of definition.states.keys()) {
    const seen: string[] = [];
    let at: string | undefined = state;
    while (at !== undefined && !seen.includes(at)) {
      seen.push(at);
      const rule: { givesUpBy: string } | undefined = definition.states.get(at)?.rule;
      at = rule && definition.next(at, rule.givesUpBy);
    }
    ends.set(state, at === undefined ? seen : [...seen, 'for ever']);
  }
  return ends;
}

describe.each([gpuMachine, nodeMachine, subscriptionMachine, workloadMachine].map(({ definition }) => definition as MachineDefinition))(
  'the machine of a $id',
  (definition) => {
    it('comes from every transient state to a stable one by its deadlines alone', () => {
      for (const [state, path] of endsOf(definition)) {
        expect([state, path.includes('for ever')]).toEqual([state, false]);
        expect(definition.states.get(path.at(-1) ?? '')?.rule).toBeUndefined();
      }
    });
  },
);
