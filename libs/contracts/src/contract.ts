/**
 * A class whose instances go over the wire as JSON. It validates what comes in and describes itself in the OpenAPI
 * document.
 */
export type Wire<T extends object = object> = new () => T;

/**
 * A wire class with a check of its own in the place of its decorators, which are then for the OpenAPI document alone:
 * for lists of a thousand entries. `fromWire` throws AppError `invalid_input` that names each faulty field, unknown
 * ones included.
 */
export interface ReadsItself<T extends object = object> {
  fromWire(plain: unknown): T;
}

/** One operation of a service: a value, so that "find references" shows its handler and each of its callers. */
export interface Operation<Input extends object = object, Output extends object = object> {
  /** The service that answers; also the name of its queue group. */
  readonly service: string;
  /** Derived, never typed twice: `teams.create`, `teams.members.list`. */
  readonly subject: string;
  readonly input: Wire<Input>;
  readonly output: Wire<Output>;
}

interface Shape<Input extends object, Output extends object> {
  readonly input: Wire<Input>;
  readonly output: Wire<Output>;
}

/** Declares one operation by its input class and its output class. */
export function operation<Input extends object, Output extends object>(
  input: Wire<Input>,
  output: Wire<Output>,
): Shape<Input, Output> {
  return { input, output };
}

/** The operations of one service, or of one of its features, by name. */
export type Contract<Shapes> = {
  readonly [Name in keyof Shapes]: Shapes[Name] extends Shape<infer Input, infer Output>
    ? Operation<Input, Output>
    : never;
};

/**
 * Builds a contract value. `path` is the service's name, with the feature's name behind a dot where the service
 * has several contracts: `contract('teams', …)`, `contract('teams.members', …)`.
 */
export function contract<Shapes extends Record<string, { input: Wire; output: Wire }>>(
  path: string,
  shapes: Shapes,
): Contract<Shapes> {
  const service = path.split('.', 1)[0];
  const entries = Object.entries(shapes).map(([name, shape]) => [
    name,
    Object.freeze({ service, subject: `${path}.${name}`, ...shape }),
  ]);
  return Object.freeze(Object.fromEntries(entries)) as Contract<Shapes>;
}

/** A fact that a service tells the others, durably. */
export interface EventType<Payload extends object = object> {
  /** The service that owns the fact. */
  readonly service: string;
  /** `teams.member_added`: the service, a dot, what happened in the past tense. */
  readonly name: string;
  readonly payload: Wire<Payload>;
  /** Who may publish it: only its owner, or any service, which consumers then see as the `publisher` of a delivery. */
  readonly publishers: 'owner' | 'any';
}

const declared = new Set<EventType>();

/** The events of all contracts that are loaded in this process. */
export function declaredEvents(): readonly EventType[] {
  return [...declared];
}

/** An event whose owner is the first word of its name. `publishers` is `owner` unless given. */
export function event<Payload extends object>(
  name: `${string}.${string}`,
  payload: Wire<Payload>,
  { publishers = 'owner' }: Partial<Pick<EventType, 'publishers'>> = {},
): EventType<Payload> {
  const type = Object.freeze({ service: name.split('.', 1)[0] ?? name, name, payload, publishers });
  declared.add(type);
  return type;
}

/** A hint that may be lost: told to every process that listens now, never stored. For caches only. */
export interface BroadcastType<Payload extends object = object> {
  readonly name: string;
  readonly payload: Wire<Payload>;
}

export function broadcast<Payload extends object>(
  name: `${string}.${string}`,
  payload: Wire<Payload>,
): BroadcastType<Payload> {
  return Object.freeze({ name, payload });
}
