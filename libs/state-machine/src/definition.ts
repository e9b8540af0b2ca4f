import type { AnyStateMachine, AnyStateNode, EventFrom, StateValueFrom } from 'xstate';
import type { BackOff } from '@atoll/waiting';

/** The `meta` of a state in a definition. A state without it is stable. */
export type StateRule = TransientRule | ReviewRule;

/** A stable state with a step: it runs once after the row enters the state, and again whenever the row is touched. */
interface ReviewRule {
  readonly isReviewed: true;
  /**
   * The row waits here for something and leaves by itself, whenever that is: its step must not answer `rest`, and the
   * operator sees the row among what waits. Needs a partial index `WHERE state = '<state>'`.
   */
  readonly neverRests?: true;
}

export interface TransientRule {
  /**
   * Milliseconds from entry until the state is given up. A running step is aborted then. What no worker came to for 5 s
   * or more before that, as the service was away or many waited, and of which no try has failed, is tried after it: it
   * has one half of the time that it had left when it became due. Not so where its lane is known to hang.
   */
  readonly deadlineMs: number;
  /**
   * The event that gives the state up, after the deadline, a permanent error or the last try. It leads to the state's
   * one failed twin.
   */
  readonly givesUpBy: string;
  /** Tries of the step before the state is given up. Default: only the deadline limits them. */
  readonly tries?: number;
  /** Wait between two tries of the step. Default: 500 ms, doubled up to 30 s. */
  readonly backOff?: BackOff;
  /**
   * For states that give something back, such as a GPU, and for those that so many rows enter at once that some have
   * their first turn after the deadline. If no try has failed before the deadline, one is made after it, unless the
   * row's lane is known to hang. A permanent error in one lane gives the state up only after the row's other lanes have
   * been tried.
   */
  readonly givesBack?: true;
  /** Others count on the deadline: the state is given up then, whether or not anybody came to the row before. */
  readonly byTheClock?: true;
  /**
   * For states that thousands of rows may enter at once: rows that are under way at a time, in all processes together.
   * The others wait to be begun, without a deadline: it counts from then. Half of those that are begun next have waited
   * for longest, half of them came last, so that one alone does not wait behind thousands. A row counts for the first
   * quarter of `deadlineMs`, so four portions are under way where none ends. Rows of a lane in which a try has failed,
   * and those that are tried late, do not count. Replicas that begin rows in the same instant may exceed it, each by as
   * many at most. Needs a partial index `(entered_at, <key>) WHERE state = '<state>' AND deadline_at IS NULL`.
   */
  readonly portion?: number;
}

export interface StateDefinition {
  /** Defined for transient states only. */
  readonly rule: TransientRule | undefined;
  readonly isReviewed: boolean;
  readonly neverRests: boolean;
  readonly isFinal: boolean;
  /** Event → the state it leads to. */
  readonly on: ReadonlyMap<string, string>;
}

/** A flat, pure XState machine as a lookup table. */
export interface MachineDefinition<State extends string = string, Event extends string = string> {
  readonly id: string;
  readonly initial: State;
  readonly states: ReadonlyMap<State, StateDefinition>;
  /** The state that an event leads to; undefined if the event changes nothing in this state. */
  next(state: State, event: Event): State | undefined;
}

export type StateOf<Machine extends AnyStateMachine> = StateValueFrom<Machine> & string;
export type EventOf<Machine extends AnyStateMachine> = EventFrom<Machine>['type'];

/**
 * Reads a definition made with XState's `setup().createMachine()`. Throws an Error that names every fault: a state that
 * is unreachable, or that is not final and has no exit; a guard, action, invocation or nested state, since none of them
 * survives a crash; a transient state without a deadline or without a failed twin.
 */
export function defineMachine<Machine extends AnyStateMachine>(
  machine: Machine,
): MachineDefinition<StateOf<Machine>, EventOf<Machine>> {
  const nodes = Object.entries(machine.states) as [string, AnyStateNode][];
  const states = new Map(
    nodes.map(([name, node]) => [name, { ...metaOf(node), isFinal: node.type === 'final', on: targetsOf(node) }]),
  );
  const initial = machine.root.initial.target[0]?.key ?? '';
  const faults = [...nodes.flatMap(([name, node]) => impurities(name, node)), ...faultsOf(initial, states)];
  if (faults.length > 0) throw new Error(`The machine "${machine.id}" cannot be made durable: ${faults.join('; ')}.`);
  return {
    id: machine.id,
    initial,
    states,
    next: (state, event) => states.get(state)?.on.get(event),
  };
}

function metaOf({ meta }: AnyStateNode): Pick<StateDefinition, 'rule' | 'isReviewed' | 'neverRests'> {
  const said = meta as StateRule | undefined;
  const isReviewed = said !== undefined && 'isReviewed' in said;
  const neverRests = isReviewed ? said.neverRests === true : said !== undefined;
  return { rule: isReviewed ? undefined : said, isReviewed, neverRests };
}

function targetsOf(node: AnyStateNode): Map<string, string> {
  return new Map(
    [...node.transitions].flatMap(([event, [first]]) => (first?.target?.[0] ? [[event, first.target[0].key]] : [])),
  );
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
