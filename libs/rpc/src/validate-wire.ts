import { plainToInstance } from 'class-transformer';
import { validateSync, type ValidationError, type ValidatorOptions } from 'class-validator';
import { invalidInput, type FieldError } from '@atoll/errors';
import type { ReadsItself, Wire } from '@atoll/contracts';

const rules: ValidatorOptions = { whitelist: true, forbidNonWhitelisted: true, forbidUnknownValues: false, stopAtFirstError: true };

/** How fields are taken that a class does not have. */
export interface WireRules {
  /** Leaves them out instead of refusing them. */
  ignoreUnknown?: boolean;
}

/** Deeper than any wire class, and shallow enough for what recurses. */
const maxDepth = 32;
/** What an unknown field may add to a message. */
const maxPathLength = 200;

/**
 * Turns what came over the wire into an instance of its class, with every field checked: the same function for the
 * bus and for HTTP. Throws `invalid_input` that names each faulty field, unknown ones included unless they are ignored.
 */
export function validateWire<T extends object>(type: Wire<T>, plain: unknown, { ignoreUnknown = false }: WireRules = {}): T {
  if ('fromWire' in type) return (type as unknown as ReadsItself<T>).fromWire(plain);
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) {
    throw invalidInput([{ path: '', code: 'isObject', message: 'a JSON object is expected' }]);
  }
  requireHarmless(plain, '', 1, ignoreUnknown);
  const instance = plainToInstance(type, plain);
  const faults = validateSync(instance, { ...rules, forbidNonWhitelisted: !ignoreUnknown });
  if (faults.length > 0) throw invalidInput(faults.flatMap((fault) => fieldErrors(fault)));
  return instance;
}

/**
 * Refuses, or leaves out, what would not reach the validator, or break what recurses before it: depth, and names of every object's
 * prototype, which class-transformer leaves out in silence or class-validator takes for declared.
 */
function requireHarmless(value: object, path: string, depth: number, ignoreUnknown: boolean): void {
  if (depth > maxDepth) throw invalidInput([{ path, code: 'maxDepth', message: `objects must not be nested deeper than ${maxDepth}` }]);
  for (const [name, member] of Object.entries(value)) {
    const here = path ? `${path}.${name}` : name;
    if (name in Object.prototype) {
      if (!ignoreUnknown) throw invalidInput([unknownField(here)]);
      Reflect.deleteProperty(value, name);
    } else if (typeof member === 'object' && member !== null) requireHarmless(member as object, here, depth + 1, ignoreUnknown);
  }
}

function fieldErrors(fault: ValidationError, parent = ''): FieldError[] {
  const path = parent ? `${parent}.${fault.property}` : fault.property;
  const own = Object.entries(fault.constraints ?? {}).map(([code, message]) =>
    code === 'whitelistValidation' ? unknownField(path) : { path, code, message },
  );
  return [...own, ...(fault.children ?? []).flatMap((child) => fieldErrors(child, path))];
}

function unknownField(path: string): FieldError {
  const shown = path.slice(0, maxPathLength);
  return { path: shown, code: 'unknownField', message: `${shown} is not a known field` };
}
