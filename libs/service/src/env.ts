import 'reflect-metadata';
import { validateWire, type Wire } from '@atoll/contracts';
import { isAppError } from '@atoll/errors';

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

/**
 * Reads the environment into a class of settings, with its defaults and its validators: a property is set by the
 * variable that `@Variable` names, or by the one of its own name. An empty variable counts as absent, as compose files
 * produce them. Throws one Error that lists every fault at once, without the faulty values: they may be secrets.
 */
export function loadEnv<Env extends object>(type: Wire<Env>, source: NodeJS.ProcessEnv = process.env): Env {
  const given = [...variablesOf(type)].flatMap(([property, variable]) => {
    const value = source[variable];
    return value === undefined || value === '' ? [] : [[property, value] as const];
  });
  try {
    return validateWire(type, { ...new type(), ...Object.fromEntries(given) }, { unknownFields: 'keep', isText: true });
  } catch (error) {
    if (!isAppError(error)) throw error;
    const names = variablesOf(type);
    const lines = (error.details.errors ?? []).map(
      ({ path, message }) => `  ${message.replace(new RegExp(`^${path}\\b`), names.get(path) ?? path)}`,
    );
    throw new Error(`Invalid environment variables:\n${lines.join('\n')}`);
  }
}
