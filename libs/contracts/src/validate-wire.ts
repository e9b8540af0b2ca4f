import { plainToInstance } from 'class-transformer';
import { getMetadataStorage, validateSync, type ValidationError } from 'class-validator';
import { invalidInput, type FieldError } from '@atoll/errors';
import type { ReadsItself, Wire } from './contract.js';
import { textGroup } from './text.js';
import { rememberMetadata } from './remembered-metadata.js';
import { unknownField } from './unknown-field.js';
import { withinBounds } from './wire-bounds.js';

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
 * Turns what came from outside into an instance of its class, each field converted and checked as its decorators say:
 * the one validator of HTTP, of calls and events, and of the environment. Does not change what it is given. Throws
 * `invalid_input` that names each faulty field and what is allowed, and no value.
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
  const bounded = unknownFields === 'keep' ? plain : withinBounds(type, plain, unknownFields);
  const instance = plainToInstance(type, bounded, isText ? { groups: [textGroup] } : {});
  const faults = validateSync(instance, {
    whitelist: unknownFields !== 'keep',
    forbidNonWhitelisted: unknownFields === 'refuse',
    forbidUnknownValues: false,
    stopAtFirstError: true,
  });
  return { instance, faults: faults.flatMap((fault) => fieldErrors(fault)) };
}

function fieldErrors(fault: ValidationError, parent = ''): FieldError[] {
  const path = parent ? `${parent}.${fault.property}` : fault.property;
  const own = Object.entries(fault.constraints ?? {}).map(([code, message]) =>
    code === 'whitelistValidation' ? unknownField(path) : { path, code, message: sentenceOf(fault, message) },
  );
  return [...own, ...(fault.children ?? []).flatMap((child) => fieldErrors(child, path))];
}

/** Of a field that was not given it says so, beside what is allowed. */
function sentenceOf({ property, value }: ValidationError, message: string): string {
  const start = `${property} `;
  if (value !== undefined || !message.startsWith(start)) return message;
  return `${start}is missing: it ${message.slice(start.length)}`;
}
