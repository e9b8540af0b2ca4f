import type { AnyStateMachine, AnyStateNode, EventFrom, StateValueFrom } from 'xstate';
import type { BackOff } from './back-off.js';

/** What a state of a definition says of itself in its `meta`; a state without is stable. */
export type StateRule = TransientRule | ReviewRule;

/** Of a stable state in which something may be found to be done: its step is run once after the entry, and whenever the row is touched. */
interface ReviewRule {
  readonly isReviewed: true;
}

export interface TransientRule {
  /** Milliseconds from the moment of entry until it is given up, whatever is under way. */
  readonly deadlineMs: number;
  /** The event by which it is given up: after the deadline, a permanent error, or the last try. It leads to the state's one failed twin. */
  readonly givesUpBy: string;
  /** Tries of its step; without a limit but the deadline unless given. */
  readonly tries?: number;
  /** Between two tries of its step. 500 ms, doubled up to 30 s, unless given. */
  readonly backOff?: BackOff;
  /**
   * For states that give something back. Where no try was made before the deadline, one is made after it, unless its
   * lane is known to hang. And a lane that fails for good is given up only after the row's other lanes had their turn.
   */
  readonly givesBack?: true;
}

interface StateDefinition {
  /** Of a transient state. */
  readonly rule: TransientRule | undefined;
  readonly isReviewed: boolean;
  readonly isFinal: boolean;
  /** Event → the state it leads to. */
  readonly on: ReadonlyMap<string, string>;
}

/** A flat, pure XState machine, as a table that can be made durable. */
export interface MachineDefinition<State extends string = string, Event extends string = string> {
  readonly id: string;
  readonly initial: State;
  readonly states: ReadonlyMap<State, StateDefinition>;
  /** Where an event leads from a state; undefined where it changes nothing. */
  next(state: State, event: Event): State | undefined;
}

export type StateOf<Machine extends AnyStateMachine> = StateValueFrom<Machine> & string;
export type EventOf<Machine extends AnyStateMachine> = EventFrom<Machine>['type'];

/**
 * Reads a definition made with XState's `setup().createMachine()`. Throws an Error that names each fault: a state that nothing reaches, or that is
 * left by nothing and not final; a guard, an action, an invocation or a nested state, none of which survives a crash; a transient state without
 * a deadline or without a failed twin.
 */
export function defineMachine<Machine extends AnyStateMachine>(machine: Machine): MachineDefinition<StateOf<Machine>, EventOf<Machine>> {
  const nodes = Object.entries(machine.states) as [string, AnyStateNode][];
  const states = new Map(nodes.map(([name, node]) => [name, { ...metaOf(node), isFinal: node.type === 'final', on: targetsOf(node) }]));
  const initial = machine.root.initial.target[0]?.key ?? '';
  const faults = [...nodes.flatMap(([name, node]) => impurities(name, node)), ...faultsOf(initial, states)];
  if (faults.length > 0) throw new Error(`The machine "${machine.id}" cannot be made durable: ${faults.join('; ')}.`);
  return {
    id: machine.id,
    initial: initial,
    states: states,
    next: (state, event) => states.get(state)?.on.get(event),
  };
}

function metaOf({ meta }: AnyStateNode): Pick<StateDefinition, 'rule' | 'isReviewed'> {
  const said = meta as StateRule | undefined;
  const isReviewed = said !== undefined && 'isReviewed' in said;
  return { rule: isReviewed ? undefined : said, isReviewed };
}

function targetsOf(node: AnyStateNode): Map<string, string> {
  return new Map([...node.transitions].flatMap(([event, [first]]) => (first?.target?.[0] ? [[event, first.target[0].key]] : [])));
}

function impurities(name: string, node: AnyStateNode): string[] {
  const transitions = [...node.transitions.values()];
  const isPure =
    transitions.every(([first, ...more]) => first && more.length === 0 && !first.guard && first.actions.length === 0) &&
    node.entry.length === 0 &&
    node.exit.length === 0 &&
    node.invoke.length === 0 &&
    Object.keys(node.states).length === 0;
  return isPure ? [] : [`"${name}" has more than events with one target each`];
}

function faultsOf(initial: string, states: ReadonlyMap<string, StateDefinition>): string[] {
  const reached = new Set([initial]);
  for (const state of reached) for (const target of states.get(state)?.on.values() ?? []) reached.add(target);
  return [...states].flatMap(([name, { rule, isFinal, on }]) => {
    const faults = reached.has(name) ? [] : [`nothing reaches "${name}"`];
    if (isFinal) return faults;
    if (on.size === 0) faults.push(`nothing leads out of "${name}"`);
    if (!rule) return faults;
    if (!(rule.deadlineMs > 0)) faults.push(`"${name}" is transient and has no deadline`);
    const twin = on.get(rule.givesUpBy);
    if (twin === undefined || twin === name) faults.push(`"${name}" is transient and has no failed twin`);
    return faults;
  });
}
