import { plainToInstance } from 'class-transformer';
import { getMetadataStorage, validateSync, type ValidationError } from 'class-validator';
import { invalidInput, type FieldError } from '@atoll/errors';
import type { ReadsItself, Wire } from './contract.js';
import { textGroup } from './text.js';
import { rememberMetadata } from './remembered-metadata.js';

rememberMetadata(getMetadataStorage());

export interface WireRules {
  /**
   * What becomes of fields that the class does not declare. They are refused, unless given. `omit`: for what may be
   * newer than its reader. `keep`: for a class of settings, which may have properties that nothing from outside sets.
   */
  unknownFields?: 'refuse' | 'omit' | 'keep';
  /** Whether it has no numbers of its own, as a query, so that a whole number is its digits. In JSON it is a number. */
  isText?: boolean;
}

/**
 * More names than any object that is meant has (a pod's variables: 200). class-transformer compares each name with all
 * others.
 */
const mostNames = 500;
/** Deeper than any wire class, and shallow enough for what recurses. */
const maxDepth = 32;
/** The code of a fault that is a field which the class does not declare. */
export const unknownFieldCode = 'unknownField';
/** What an unknown field may add to a message. */
const maxPathLength = 200;

/**
 * Turns what came from outside into an instance of its class, each field converted and checked as its decorators say:
 * the one validator of HTTP, of calls and events, and of the environment. Throws `invalid_input` that names each faulty
 * field and what is allowed, and no value.
 */
export function validateWire<T extends object>(type: Wire<T>, plain: unknown, rules: WireRules = {}): T {
  if ('fromWire' in type) return (type as unknown as ReadsItself<T>).fromWire(plain);
  const { instance, faults } = readWire(type, plain, rules);
  if (faults.length > 0) throw invalidInput(faults);
  return instance;
}

/**
 * As `validateWire`, for who needs the fields that are right where others are faulty. What cannot be read at all throws
 * as there.
 */
export function readWire<T extends object>(
  type: Wire<T>,
  plain: unknown,
  { unknownFields = 'refuse', isText = false }: WireRules = {},
): { instance: T; faults: FieldError[] } {
  if (typeof plain !== 'object' || plain === null || Array.isArray(plain)) {
    throw invalidInput([{ path: '', code: 'isObject', message: 'a JSON object is expected' }]);
  }
  requireHarmless(plain, '', 1, unknownFields !== 'refuse');
  const tooLong = unknownFields === 'refuse' ? tooLongLists(type, plain) : [];
  if (tooLong.length > 0) throw invalidInput(tooLong);
  const instance = plainToInstance(type, plain, isText ? { groups: [textGroup] } : {});
  const faults = validateSync(instance, {
    whitelist: unknownFields !== 'keep',
    forbidNonWhitelisted: unknownFields === 'refuse',
    forbidUnknownValues: false,
    stopAtFirstError: true,
  });
  return { instance, faults: faults.flatMap((fault) => fieldErrors(fault)) };
}

/**
 * Lists that are longer than their class says, with what it says of them. Found before an instance is made of each of
 * their entries: that takes a hundred times as long as to read their JSON.
 */
function tooLongLists(type: Wire, plain: object): FieldError[] {
  const fields = plain as Record<string, unknown>;
  return getMetadataStorage()
    .getTargetValidationMetadatas(type, '', false, false)
    .flatMap(({ propertyName: path, name: code, constraints, message }) => {
      const value = fields[path];
      const max: unknown = code === 'arrayMaxSize' ? constraints?.[0] : undefined;
      if (!Array.isArray(value) || typeof max !== 'number' || value.length <= max) return [];
      const sentence = typeof message === 'string' ? message : `$property must hold at most ${max} entries`;
      return [{ path, code: String(code), message: sentence.replace('$property', path) }];
    });
}

/**
 * Refuses, or leaves out, what would not reach the validator, or break what recurses before it: depth, and names of
 * every object's prototype, which class-transformer leaves out in silence or class-validator takes for declared.
 */
function requireHarmless(value: object, path: string, depth: number, isOmitted: boolean): void {
  if (depth > maxDepth)
    throw invalidInput([{ path, code: 'maxDepth', message: `objects must not be nested deeper than ${maxDepth}` }]);
  const members = Object.entries(value);
  if (!isOmitted && !Array.isArray(value) && members.length > mostNames) {
    const which = path ? shownPath(path) : 'an object';
    throw invalidInput([
      { path: shownPath(path), code: 'maxProperties', message: `${which} must not have more than ${mostNames} fields` },
    ]);
  }
  for (const [name, member] of members) {
    const here = path ? `${path}.${name}` : name;
    if (name in Object.prototype) {
      if (!isOmitted) throw invalidInput([unknownField(here)]);
      Reflect.deleteProperty(value, name);
    } else if (typeof member === 'object' && member !== null)
      requireHarmless(member as object, here, depth + 1, isOmitted);
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
  const shown = shownPath(path);
  return { path: shown, code: unknownFieldCode, message: `${shown} is not a known field` };
}

function shownPath(path: string): string {
  return path.slice(0, maxPathLength);
}
