import { defineMachine, type EventOf, type Machine, type StateOf, type StateRule } from '@atoll/state-machine';
import { setup } from 'xstate';
import { beginning, runStates } from './run-states.js';
import { VmEntity } from './vm.entity.js';

/** A VM, from its start to its end, again and again. It is billed in `running` alone. */
const logic = setup({
  types: {
    meta: {} as StateRule,
    events: {} as {
      type: 'STARTED' | 'ENDED' | 'COMPLETED' | 'AGAIN' | 'START' | 'STOP' | 'RESTART' | 'DELETE' | 'GONE' | 'FAILED';
    },
  },
}).createMachine({
  id: 'vm',
  initial: 'starting',
  states: {
    starting: beginning,
    ...runStates('starting', 'starting'),
  },
});

export type VmState = StateOf<typeof logic>;
export type VmEvent = EventOf<typeof logic>;
export const vmMachine: Machine<VmEntity, VmState, VmEvent> = { entity: VmEntity, definition: defineMachine(logic) };
