import { IntersectionType } from '@nestjs/swagger';
import { contract, operation, type Contract } from '../contract.js';
import { Flag, Instant, ListOf, Nested, OneOf, Text, WholeNumber } from '../fields.js';
import { Nothing, PageFromOne, PageOf } from '../page.js';
import { ComposedOfServices, machineServices, type MachineService } from './services.js';

/** Rows of one machine that are counted, and can be paged through, for each kind. */
export const countedRowsLimit = 10_000;

const machineKinds = ['waiting', 'failed'] as const;
export type MachineKind = (typeof machineKinds)[number];

const kindField = { example: 'waiting', description: 'Whether the process is under way, or has failed.' };
const nameForm = /^[a-z][a-z_]{0,39}$/;
const nameField = { max: 40, pattern: nameForm, patternHint: 'lower-case letters and underscores' };
const machineField = { ...nameField, example: 'subscription', description: 'Name of the state machine.' };
const stateField = { ...nameField, example: 'subscribing', description: 'State of the process.' };
const counted = { min: 0, max: countedRowsLimit };

export class MachineAges {
  @WholeNumber({ ...counted, example: 3, description: 'Entered less than a minute ago.' })
  under_minute!: number;

  @WholeNumber({ ...counted, example: 1, description: 'Entered between a minute and an hour ago.' })
  under_hour!: number;

  @WholeNumber({ ...counted, example: 0, description: 'Entered between an hour and a day ago.' })
  under_day!: number;

  @WholeNumber({ ...counted, example: 0, description: 'Entered a day ago or earlier.' })
  older!: number;
}

/** The processes of one machine in one state. */
export class MachineState {
  @OneOf('MachineService', machineServices, { example: 'gpuaas', description: 'The service that runs the machine.' })
  service!: MachineService;

  @Text(machineField)
  machine!: string;

  @Text(stateField)
  state!: string;

  @OneOf('MachineKind', machineKinds, kindField)
  kind!: MachineKind;

  @WholeNumber({
    ...counted,
    example: 4,
    description: `Number of processes; at most ${countedRowsLimit} of a machine are counted.`,
  })
  count!: number;

  @Flag({ example: false, description: 'Whether there are more than were counted.' })
  has_more!: boolean;

  @WholeNumber({ ...counted, example: 1, description: 'Processes past the deadline of their state.' })
  overdue!: number;

  @WholeNumber({ ...counted, example: 2, description: 'Processes whose step has failed and will be retried.' })
  retrying!: number;

  @Nested(() => MachineAges, { description: 'Processes by the time since they entered the state.' })
  ages!: MachineAges;

  @Instant({ description: 'Instant at which the longest of them entered the state.' })
  oldest_entered_at!: string;
}

/** What one service answers. */
export class MachineStatesOfService {
  @ListOf(() => MachineState, { max: 500 })
  data!: MachineState[];
}

export class MachineStates extends ComposedOfServices {
  @ListOf(() => MachineState, { max: 500, description: 'States in which processes wait or have failed.' })
  data!: MachineState[];
}

export class MachinePath {
  @OneOf('MachineService', machineServices, { example: 'gpuaas', description: 'The service that runs the machine.' })
  service!: MachineService;

  @Text(machineField)
  machine!: string;
}

class MachineFilter {
  @OneOf('MachineKind', machineKinds, {
    example: 'failed',
    description: 'Whether processes under way are listed, or failed ones.',
  })
  kind!: MachineKind;

  @Text({ ...stateField, optional: true, description: 'State of the processes; all states of the kind if left out.' })
  state?: string;
}

export class ListProcessesQuery extends IntersectionType(MachineFilter, PageFromOne) {}

export class ListProcesses extends IntersectionType(MachinePath, ListProcessesQuery) {}

export class ProcessError {
  @Text({ max: 200, example: 'unreachable', description: 'Code of the error.' })
  code!: string;

  @Text({ min: 0, max: 4_000, multiline: true, description: 'Sentence for people.' })
  message!: string;

  @Instant({ description: 'Instant of the error.' })
  at!: string;
}

/** One process: a row of a state machine. */
export class MachineProcess {
  @Text({ max: 100, example: '42', description: 'Id of the resource that the process is about.' })
  key!: string;

  @Text(stateField)
  state!: string;

  @OneOf('MachineKind', machineKinds, kindField)
  kind!: MachineKind;

  @Instant({ description: 'Instant at which it entered the state.' })
  entered_at!: string;

  @Instant({
    nullable: true,
    description: 'Instant at which the state times out; null if it never does, and before it is started.',
  })
  deadline_at!: string | null;

  @Instant({ nullable: true, description: 'Instant before which its step is not tried again; null if it may run now.' })
  next_try_at!: string | null;

  @WholeNumber({ min: 0, max: 1_000_000_000, example: 2, description: 'Failed tries in this state.' })
  attempts!: number;

  @Nested(() => ProcessError, { nullable: true, description: 'Last error, or the reason why it waits.' })
  error!: ProcessError | null;

  @Text({ min: 0, max: 500, example: 'node:7', description: 'Dependency of its step, such as a node; empty for none.' })
  lane!: string;

  @Text({ max: 200, nullable: true, description: 'Id of the request that caused the last transition.' })
  request_id!: string | null;
}

/** Those that entered their state first, first. */
export class ProcessPage extends PageOf(() => MachineProcess) {}

type MachineOperations = Contract<{
  states: { input: typeof Nothing; output: typeof MachineStatesOfService };
  list: { input: typeof ListProcesses; output: typeof ProcessPage };
}>;

/** What the library of state machines answers to the operator for each service that has some. */
export function machines(service: string): MachineOperations {
  return contract(`${service}.machines`, {
    states: operation(Nothing, MachineStatesOfService),
    list: operation(ListProcesses, ProcessPage),
  });
}
