import { invalidInput, isAppError, type FieldError } from '@atoll/errors';

/** A fault that a service found in a field of its input, as one of a field of an old call. */
export type ToldAs = (fault: FieldError) => FieldError;

/** The error, with each of its faults told so. */
export function withFaults(error: unknown, toldAs: ToldAs): unknown {
  return isAppError(error) && error.details.errors ? invalidInput(error.details.errors.map(toldAs)) : error;
}

/** For a call that has other names for fields, or has them elsewhere: the path of each, by that of the main API. */
export function atPaths(paths: Readonly<Record<string, string>>): ToldAs {
  return ({ path, code, message }) => {
    const old = paths[path] ?? path;
    const name = old.slice(old.lastIndexOf('.') + 1);
    return { path: old, code, message: message.startsWith(`${path} `) ? name + message.slice(path.length) : message };
  };
}
