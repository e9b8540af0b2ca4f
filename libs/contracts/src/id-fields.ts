import type { ApiPropertyOptions } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { ArrayMinSize, IsArray, IsUUID, Matches, ValidateBy } from 'class-validator';
import { field, type FieldOptions, holdsAtMost } from './fields.js';

/** A UUID of any version (RFC 9562), in either case; it is lower case from here on, so that one id has one spelling. */
export function Uuid(options: FieldOptions = {}): PropertyDecorator {
  const lowerCase = Transform(({ value }: { value: unknown }) =>
    typeof value === 'string' ? value.toLowerCase() : value,
  );
  return field(
    options,
    { type: String, format: 'uuid' },
    lowerCase,
    IsUUID('loose', { message: '$property must be a UUID' }),
  );
}

/** Up to `max` ids, as `Uuid`. */
export function Uuids(options: FieldOptions & { max: number }): PropertyDecorator {
  const { max } = options;
  return field(
    options,
    { type: 'array', items: { type: 'string', format: 'uuid' }, maxItems: max },
    IsArray({ message: '$property must be a list' }),
    holdsAtMost(max),
    IsUUID('loose', { each: true, message: 'each entry of $property must be a UUID' }),
  );
}

const counted = String.raw`[1-9]\d{0,14}`;

/** The pattern of a `NumberedId` for the OpenAPI document. */
export const numberedIdPattern = `^${counted}$`;

const digitsOf = (value: unknown): unknown => (typeof value === 'number' ? String(value) : value);

/**
 * A numeric id: a positive integer, sent as its digits or as a number; its decimal digits from here on. `allow` names
 * words that are accepted besides.
 */
export function NumberedId(options: FieldOptions & { allow?: readonly string[] } = {}): PropertyDecorator {
  const { allow = [] } = options;
  const pattern = allow.length > 0 ? `^(?:${[counted, ...allow].join('|')})$` : numberedIdPattern;
  return field(
    options,
    { type: String, pattern },
    Transform(({ value }: { value: unknown }) => digitsOf(value)),
    Matches(new RegExp(pattern), {
      message: `$property must be a positive whole number${allow.map((word) => ` or "${word}"`).join('')}`,
    }),
  );
}

/** Numeric ids, as `NumberedId`, each once. */
export function NumberedIds(options: FieldOptions & { max: number }): PropertyDecorator {
  return field(
    options,
    listOf({ type: 'string', pattern: numberedIdPattern }, options.max),
    Transform(({ value }: { value: unknown }) => (Array.isArray(value) ? value.map(digitsOf) : value)),
    ...isListOf(options.max),
    Matches(new RegExp(numberedIdPattern), {
      each: true,
      message: 'each entry of $property must be a positive whole number',
    }),
  );
}

const nameForm = /^[\x21-\x7e]{1,100}$/;

/** Short texts of one line, each once. */
export function Names(options: FieldOptions & { max: number }): PropertyDecorator {
  return field(
    options,
    listOf({ type: 'string', pattern: nameForm.source }, options.max),
    ...isListOf(options.max),
    Matches(nameForm, {
      each: true,
      message: 'each entry of $property must be a name of at most 100 letters, digits and signs',
    }),
  );
}

function listOf(items: { type: string; pattern: string }, max: number): ApiPropertyOptions {
  return { type: 'array', items, minItems: 1, maxItems: max, uniqueItems: true };
}

function isListOf(max: number): PropertyDecorator[] {
  return [
    IsArray({ message: '$property must be a list' }),
    ArrayMinSize(1, { message: '$property must not be empty' }),
    holdsAtMost(max),
    isEachOnce(),
  ];
}

/** As `ArrayUnique` of class-validator, which compares each entry with all before it. */
function isEachOnce(): PropertyDecorator {
  const validate = (value: unknown): boolean => Array.isArray(value) && new Set(value).size === value.length;
  return ValidateBy(
    { name: 'arrayUnique', validator: { validate } },
    { message: '$property must not name anything twice' },
  );
}
