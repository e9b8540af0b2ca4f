import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import type { MachineDefinition } from '@atoll/state-machine';
import { GpuaasSettings } from '../gpuaas-settings.js';
import { baremetalInstanceMachine } from '../model/baremetal-instance.machine.js';
import { baremetalNodeMachine } from '../model/baremetal-node.machine.js';
import { gpuMachine } from '../model/gpu.machine.js';
import { nodeMachine } from '../model/node.machine.js';
import { subscriptionMachine } from '../model/subscription.machine.js';
import { workloadMachine } from '../model/workload.machine.js';

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

const definitions = [
  gpuMachine,
  nodeMachine,
  subscriptionMachine,
  workloadMachine,
  baremetalNodeMachine,
  baremetalInstanceMachine(new GpuaasSettings().baremetalLimits),
].map(({ definition }) => definition as MachineDefinition);

describe.each(definitions)('the machine of a $id', (definition) => {
  it('comes from every transient state to a stable one by its deadlines alone', () => {
    for (const [state, path] of endsOf(definition)) {
      expect([state, path.includes('for ever')]).toEqual([state, false]);
      expect(definition.states.get(path.at(-1) ?? '')?.rule).toBeUndefined();
    }
  });
});

it('the columns of a machine are written by libs/state-machine alone', () => {
  const columns =
    'state|entered_at|deadline_at|due_at|parked_until|lane|further_lanes|attempts|last_error|claim_token|claimed_until|revision|request_id';
  const tables = definitions.map(({ id }) => id).join('|');
  const write = new RegExp(`UPDATE (${tables}) (?:\\w+ )?SET (?:(?!WHERE|FROM)[^\`])*\\b(${columns}) =`);
  const files = globSync('apps/gpuaas/src/**/*.ts', {
    exclude: ['**/*.spec.ts', '**/*-fixture.ts', '**/migrations/**'],
  });
  expect(files.length).toBeGreaterThan(50);
  expect(files.filter((file) => write.test(readFileSync(file, 'utf8')))).toEqual([]);
  expect(write.test('UPDATE baremetal_node node SET failures = failures + 1, due_at = now() WHERE node_id = $1')).toBe(
    true,
  );
});
