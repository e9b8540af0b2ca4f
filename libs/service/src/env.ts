import 'reflect-metadata';
import { readWire, type Wire } from '@atoll/contracts';

const variables = Symbol('atoll:variables');
const variableName = /^[A-Z][A-Z0-9_]*$/;

/**
 * The environment variable by which an operator sets this property of a class of settings. Properties named like
 * variables need none.
 */
export function Variable(name: string): PropertyDecorator {
  if (!variableName.test(name))
    throw new Error(`"${name}" is not a name for an environment variable: use capitals, digits and _.`);
  return (target, property) => {
    const known = Reflect.getMetadata(variables, target) as Map<string, string> | undefined;
    Reflect.defineMetadata(variables, new Map([...(known ?? []), [String(property), name]]), target);
  };
}

/** The environment variables of a class of settings: name of the property → name of the variable. */
export function variablesOf(type: Wire): ReadonlyMap<string, string> {
  const named =
    (Reflect.getMetadata(variables, type.prototype as object) as Map<string, string> | undefined) ??
    new Map<string, string>();
  const properties = Object.getOwnPropertyNames(new type());
  return new Map(
    properties.flatMap((property) => {
      const variable = named.get(property) ?? (variableName.test(property) ? property : undefined);
      return variable === undefined ? [] : [[property, variable] as const];
    }),
  );
}

/** What is wrong with an environment. Its message lists every fault at once. */
export class InvalidEnvironment extends Error {
  /** `faults`: one sentence a variable. No sentence shows a value, which may be a secret. */
  constructor(readonly faults: ReadonlyMap<string, string>) {
    super(`Invalid environment variables:\n${[...faults.values()].map((fault) => `  ${fault}`).join('\n')}`);
  }
}

/**
 * Reads the environment into a class of settings, with its defaults and its validators: a property is set by the
 * variable that `@Variable` names, or by the one of its own name. An empty variable counts as absent, as compose files
 * produce them. Throws `InvalidEnvironment`.
 */
export function loadEnv<Env extends object>(type: Wire<Env>, source: NodeJS.ProcessEnv = process.env): Env {
  const { env, faults } = readEnv(type, source);
  if (faults.size > 0) throw new InvalidEnvironment(faults);
  return env;
}

/**
 * As `loadEnv`, with the faults of variables, and the default in place of each that is faulty. A variable that is
 * absent and has no valid default is said to be missing.
 */
export function readEnv<Env extends object>(
  type: Wire<Env>,
  source: NodeJS.ProcessEnv,
): { env: Env; faults: Map<string, string> } {
  const names = variablesOf(type);
  const defaults = new type();
  const given = new Map(
    [...names].flatMap(([property, variable]) => (source[variable] ? [[property, source[variable]]] : [])),
  );
  const plain = { ...defaults, ...Object.fromEntries(given) };
  const { instance, faults } = readWire(type, plain, { unknownFields: 'keep', isText: true });
  const sentences = faults.map(({ path, message }): [string, string] => {
    Reflect.set(instance, path, Reflect.get(defaults, path));
    const variable = names.get(path) ?? path;
    const rule = message.replace(new RegExp(`^(?:${path}|${variable}) (?:is missing: it )?`), '');
    return [variable, given.has(path) ? `${variable} ${rule}` : `${variable} is missing: it ${rule}`];
  });
  return { env: instance, faults: new Map(sentences) };
}
