import { ApiProperty, type ApiPropertyOptions } from '@nestjs/swagger';
import { Transform, Type } from 'class-transformer';
import {
  ArrayMaxSize,
  ArrayMinSize,
  IsArray,
  IsBoolean,
  IsEmail,
  IsIn,
  IsInt,
  IsISO8601,
  IsObject,
  IsString,
  Matches,
  Max,
  MaxLength,
  Min,
  MinLength,
  ValidateIf,
  ValidateNested,
} from 'class-validator';
import type { Wire } from './contract.js';
import { emailSpelling } from './email-spelling.js';
import { manyLines, notBlank, oneLine, textGroup, textPattern, wellFormed } from './text.js';
import { nests } from './wire-shape.js';

/**
 * The fields of the wire. Each decorator says once what a field is, for validation and for the OpenAPI document alike.
 */
export interface FieldOptions {
  /** May be left out. `null` is still refused unless `nullable`. */
  optional?: boolean;
  nullable?: boolean;
  description?: string;
  example?: unknown;
}

/** Applies the presence rule, the documentation and the given validators as one decorator. */
export function field(
  options: FieldOptions,
  documentation: ApiPropertyOptions,
  ...validators: PropertyDecorator[]
): PropertyDecorator {
  const { optional = false, nullable = false, description, example } = options;
  const documented = {
    ...documentation,
    required: !optional,
    nullable,
    ...(description && { description }),
    ...(example !== undefined && { example }),
  };
  return (target, property) => {
    ApiProperty(documented as ApiPropertyOptions)(target, property);
    ValidateIf((_object, value) => !(optional && value === undefined) && !(nullable && value === null))(
      target,
      property,
    );
    for (const validator of validators) validator(target, property);
  };
}

/** Says how many entries a list may hold. */
export function holdsAtMost(max: number): PropertyDecorator {
  return ArrayMaxSize(max, { message: `$property must hold at most ${max} entries` });
}

export interface TextOptions extends FieldOptions {
  min?: number;
  max: number;
  /** Whether line feeds and tabs are part of it. */
  multiline?: boolean;
  pattern?: RegExp;
  /** What the pattern asks for, in words: "hexadecimal". */
  patternHint?: string;
  /** Names rules that no schema can state, for the OpenAPI document; they are checked elsewhere. */
  format?: string;
}

/** Text of `min` to `max` characters, not blank unless it may be empty. */
export function Text(options: TextOptions): PropertyDecorator {
  const { min = 1, max, multiline = false, pattern, patternHint, format } = options;
  const validators = [
    IsString(),
    MinLength(min, {
      message: min === 1 ? '$property must not be empty' : `$property must be at least ${min} characters long`,
    }),
    // Of a value that has a form of its own, the form says what is allowed.
    MaxLength(
      max,
      pattern && patternHint ? { message: `$property must be ${patternHint}, of at most ${max} characters` } : {},
    ),
    Matches(wellFormed, { message: '$property must be well-formed Unicode' }),
    multiline
      ? Matches(manyLines, { message: '$property must not contain control characters' })
      : Matches(oneLine, { message: '$property must be one line without control characters' }),
  ];
  if (min > 0) validators.push(Matches(notBlank, { message: '$property must not be blank' }));
  if (pattern) validators.push(Matches(pattern, { message: `$property must be ${patternHint ?? String(pattern)}` }));
  const documented = pattern?.source ?? textPattern(multiline ? 'many' : 'one', min === 0);
  const documentation = {
    type: String,
    minLength: min,
    maxLength: max,
    pattern: documented,
    ...(format && { format }),
  };
  return field(options, documentation, ...validators);
}

/**
 * An address without quotes and without what a reader does not see. One address is one user, so it has one spelling
 * from here on: lower case, composed (NFC), its domain as DNS has it (RFC 5891: `münchen.de` is `xn--mnchen-3ya.de`).
 */
export function Email(options: FieldOptions = {}): PropertyDecorator {
  const message = '$property must be an e-mail address such as ada@example.com';
  return field(
    options,
    { type: String, format: 'idn-email', maxLength: 254 },
    // Half a surrogate pair is refused as any other text that is no address; `isEmail` would throw a URIError for it.
    Transform(({ value }: { value: unknown }) =>
      typeof value === 'string' ? (value.isWellFormed() ? emailSpelling(value) : '') : value,
    ),
    // First: what is too long for an address is not looked at any further.
    MaxLength(254, {
      message: ({ value }) =>
        typeof value === 'string' ? '$property must be shorter than or equal to 254 characters' : message,
    }),
    IsEmail({ blacklisted_chars: '"' }, { message }),
    Matches(/^[^\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]+@[\x21-\x7e]+$/u, { message }),
  );
}

/**
 * ISO 8601 instant of the years 2000 to 9999 with a zone: `2026-10-01T00:00:00.000Z`. A second has at most 9 decimals;
 * with `milliseconds` at most 3; with `millisecondsThenZeros` at most 9, all of which are zeros after the third.
 */
export function Instant({
  decimals = 'nanoseconds',
  ...options
}: FieldOptions & { decimals?: keyof typeof instants } = {}): PropertyDecorator {
  const pattern = instants[decimals];
  return field(
    options,
    { type: String, format: 'date-time', pattern: pattern.source },
    // A real date; and, since ISO 8601 lets parts of a date and of a time be left out, all of them.
    IsISO8601(
      { strict: true, strictSeparator: true },
      { message: '$property must be an ISO 8601 instant such as 2026-10-01T00:00:00Z' },
    ),
    Matches(instants.nanoseconds, {
      message:
        '$property must have a date from the year 2000 on, a time with seconds and a zone, such as 2026-10-01T00:00:00Z',
    }),
    ...(decimals === 'nanoseconds' ? [] : [Matches(pattern, { message: toMilliseconds })]),
  );
}

const toMilliseconds =
  '$property must be an instant in the year 2000 or later, to the millisecond, such as 2026-10-01T00:00:00.000Z';

const instants = {
  nanoseconds: instantWith(String.raw`\d{1,9}`),
  milliseconds: instantWith(String.raw`\d{1,3}`),
  millisecondsThenZeros: instantWith(String.raw`\d{1,3}0{0,6}`),
};

/** RFC 3339, section 5.6, without leap seconds and with the T and the Z in upper case. */
function instantWith(decimals: string): RegExp {
  const time = String.raw`(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.${decimals})?`;
  return new RegExp(String.raw`^[2-9]\d{3}-\d\d-\d\dT${time}(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d)$`);
}

export function Flag(options: FieldOptions = {}): PropertyDecorator {
  return field(options, { type: Boolean }, IsBoolean());
}

/** A flag in a query, where every value is text: `true` or `false`, and as that text from here on. */
export function QueryFlag(options: FieldOptions = {}): PropertyDecorator {
  return field(options, { type: Boolean }, IsIn(['true', 'false'], { message: '$property must be true or false' }));
}

/**
 * One of these words. `name` is the type’s in the OpenAPI document, and so in clients that are generated from it. Where
 * requests may spell the words otherwise, and are transformed to them, `spelt` shows how: the document takes any text
 * then.
 */
export function OneOf(
  name: string,
  values: readonly string[],
  options: FieldOptions & { spelt?: readonly string[] } = {},
): PropertyDecorator {
  const { spelt } = options;
  return field(
    options,
    spelt ? { type: String, examples: [...spelt] } : { enum: [...values], enumName: name },
    IsIn([...values], { message: `$property must be one of: ${(spelt ?? values).join(', ')}` }),
  );
}

/** One of these words of ASCII letters, in upper and lower case alike, and spelt as here from here on. */
export function OneOfInAnyCase(values: readonly string[], options: FieldOptions = {}): PropertyDecorator {
  const letters = (word: string): string =>
    [...word].map((letter) => `[${letter.toUpperCase()}${letter.toLowerCase()}]`).join('');
  const spelt = (given: string): string => values.find((word) => word.toLowerCase() === given.toLowerCase()) ?? given;
  return field(
    options,
    { type: String, pattern: `^(?:${values.map(letters).join('|')})$` },
    Transform(({ value }: { value: unknown }) => (typeof value === 'string' ? spelt(value) : value)),
    IsIn([...values], { message: `$property must be one of: ${values.join(', ')}` }),
  );
}

const orNull = ({ nullable = false }: FieldOptions): string => (nullable ? ', or null' : '');

/**
 * A whole number; in a query, a path or the environment its decimal digits. `1e3`, `0x10`, ` 7` and `1.0` are refused.
 * The message names the `unit`.
 */
export function WholeNumber(options: FieldOptions & { min: number; max: number; unit?: string }): PropertyDecorator {
  const { min, max, unit } = options;
  const message = `$property must be a whole number ${unit ? `of ${unit} ` : ''}from ${min} to ${max}${orNull(options)}`;
  return field(
    options,
    { type: 'integer', minimum: min, maximum: max },
    Transform(
      ({ value }: { value: unknown }) =>
        typeof value === 'string' && /^(?:0|-?[1-9]\d{0,14})$/.test(value) ? Number(value) : value,
      { groups: [textGroup] },
    ),
    IsInt({ message }),
    Min(min, { message }),
    Max(max, { message }),
  );
}

/**
 * A number that grows with every change of what a fact is about: of two facts the one with the highest value holds.
 * `first`: that of a new one.
 */
export const Revision = (first: 0 | 1 = 1): PropertyDecorator =>
  WholeNumber({
    min: first,
    max: Number.MAX_SAFE_INTEGER,
    description: 'Grows with every change: the highest value wins.',
  });

/** An object of another wire class. (Swagger takes a function for a lazy type only where its name is `type`.) */
export function Nested(type: () => Wire, options: FieldOptions = {}): PropertyDecorator {
  const message = `$property must be an object${orNull(options)}`;
  return field(
    options,
    { type: () => type() },
    IsObject({ message }),
    ValidateNested({ message, context: nests(type) }),
    Type(type),
  );
}

/** A list of objects of another wire class. */
export function ListOf(type: () => Wire, options: FieldOptions & { min?: number; max: number }): PropertyDecorator {
  const { min = 0, max } = options;
  const message = 'each entry of $property must be an object';
  return field(
    options,
    { type: () => type(), isArray: true, ...(min > 0 && { minItems: min }), maxItems: max },
    IsArray({ message: '$property must be a list' }),
    ArrayMinSize(min, { message: `$property must hold at least ${min} ${min === 1 ? 'entry' : 'entries'}` }),
    holdsAtMost(max),
    // ValidateNested alone would take a list for an object, and look at the entries of that.
    IsObject({ each: true, message }),
    ValidateNested({ each: true, message, context: nests(type) }),
    Type(type),
  );
}

/**
 * A decimal number as text, so that it goes through no float: at least 0, at most `max` (a power of ten), at most 9
 * digits behind the point. With `orNumber` a JSON number is taken too, rounded to 9 decimals; it is text from here on.
 */
export function DecimalText(options: FieldOptions & { max: number; orNumber?: boolean }): PropertyDecorator {
  const { max, orNumber = false } = options;
  const form = orNumber
    ? 'a number or decimal text, such as 1.25 or "1.25"'
    : 'a decimal number in a string, such as "1.25"';
  const message = `$property must be ${form}: from 0 to ${max}, with at most 9 decimals`;
  const below = String(max).length - 2;
  const pattern = String.raw`^(?:(?:0|[1-9]\d{0,${below}})(?:\.\d{1,9})?|${max}(?:\.0{1,9})?)$`;
  const asText = Transform(({ value }: { value: unknown }) =>
    orNumber && typeof value === 'number' ? value.toFixed(9) : value,
  );
  const documentation: ApiPropertyOptions = orNumber
    ? {
        oneOf: [
          { type: 'number', minimum: 0, maximum: max },
          { type: 'string', pattern },
        ],
      }
    : { type: String, pattern };
  return field(options, documentation, asText, Matches(new RegExp(pattern), { message }));
}
