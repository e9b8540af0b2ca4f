import type { ApiPropertyOptions } from '@nestjs/swagger';
import { Transform } from 'class-transformer';
import { IsArray, IsInt, IsString, Matches, Max, MaxLength, Min, ValidateBy } from 'class-validator';
import { field, holdsAtMost, WholeNumber, type FieldOptions } from '../fields.js';
import { wellFormed } from '../text.js';

/** A DNS label (RFC 1123, section 2.1), in lower case. */
export const dnsLabel = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;
export const dnsLabelHint = 'a DNS label: lower-case letters, digits and hyphens, with a letter or digit at either end';

const maxVariables = 200;
const maxValue = 8_192;
const variableName = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** Variables that the platform or the container runtime sets, or that change which code runs before the image's own. */
const reservedVariable = /^(?:NVIDIA_|LD_|ATOLL_)|^CUDA_VISIBLE_DEVICES$/i;
/** Both as one pattern: patterns of JSON Schema have no flags. */
const allowedName = `^(?!${['NVIDIA_', 'LD_', 'ATOLL_', 'CUDA_VISIBLE_DEVICES$'].map(inAnyCase).join('|')})${variableName.source.slice(1)}`;
/** The kernel would drop what follows a NUL. */
// oxlint-disable-next-line no-control-regex -- It is what must not be there.
const withoutNul = /^[^\u0000]*$/;

/** Arguments of a process, each a text without NUL and, as every text that is stored, without half a surrogate pair. */
export function CommandLine(options: FieldOptions & { max: number }): PropertyDecorator {
  const { max } = options;
  return field(
    options,
    { type: 'array', items: { type: 'string', maxLength: 4_096, pattern: withoutNul.source }, maxItems: max },
    IsArray({ message: '$property must be a list of texts' }),
    holdsAtMost(max),
    IsString({ each: true, message: 'each entry of $property must be a text' }),
    MaxLength(4_096, { each: true, message: 'each entry of $property must be at most 4096 characters long' }),
    Matches(withoutNul, { each: true, message: 'each entry of $property must not contain the character U+0000' }),
    Matches(wellFormed, { each: true, message: 'each entry of $property must be well-formed Unicode' }),
  );
}

/** Port numbers, each from 1 to 65535. */
export function PortNumbers(options: FieldOptions & { max: number }): PropertyDecorator {
  const { max } = options;
  const message = 'each entry of $property must be a whole number from 1 to 65535';
  return field(
    options,
    { type: 'array', items: { type: 'integer', minimum: 1, maximum: 65_535 }, maxItems: max },
    IsArray({ message: '$property must be a list of port numbers' }),
    holdsAtMost(max),
    IsInt({ each: true, message }),
    Min(1, { each: true, message }),
    Max(65_535, { each: true, message }),
  );
}

/** A port number. */
export function PortNumber(options: FieldOptions = {}): PropertyDecorator {
  return WholeNumber({ ...options, min: 1, max: 65_535 });
}

/**
 * A decimal number, a JSON number with at most two decimals. (`IsNumber` counts decimals in the text of a number, and
 * throws for `1e-7`.)
 */
export function Amount(options: FieldOptions & { min: number; max: number }): PropertyDecorator {
  const { min, max } = options;
  const validate = (value: unknown): boolean =>
    typeof value === 'number' && value >= min && value <= max && Number(value.toFixed(2)) === value;
  return field(
    options,
    { type: Number, minimum: min, maximum: max },
    ValidateBy({
      name: 'isAmount',
      validator: {
        validate,
        defaultMessage: () => `$property must be a number from ${min} to ${max} with at most two decimals`,
      },
    }),
  );
}

/** Environment variables: an object of names and texts, at most 32 KiB in all. */
export function Variables(options: FieldOptions): PropertyDecorator {
  return field(
    options,
    {
      type: 'object',
      maxProperties: maxVariables,
      propertyNames: { pattern: allowedName },
      additionalProperties: { type: 'string', maxLength: maxValue, pattern: withoutNul.source },
    } as ApiPropertyOptions,
    // As it came: class-transformer would make an object of it that has lost its names.
    Transform(({ obj, key }: { obj: Record<string, unknown>; key: string }) => obj[key]),
    ValidateBy({
      name: 'isEnvironment',
      validator: {
        validate: (value) => faultOf(value) === null,
        defaultMessage: (given) => `$property ${faultOf(given?.value)}`,
      },
    }),
  );
}

function inAnyCase(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => `[${letter}${letter.toLowerCase()}]`);
}

function faultOf(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return 'must be an object of names and texts';
  const entries = Object.entries(value);
  if (entries.length > maxVariables) return `must hold at most ${maxVariables} variables`;
  let size = 0;
  for (const [name, text] of entries) {
    const shown = name.slice(0, 64);
    if (!variableName.test(name))
      return `must have names of letters, digits and _ that do not begin with a digit; "${shown}" is none`;
    if (reservedVariable.test(name))
      return `must not set ${shown}: NVIDIA_*, LD_*, ATOLL_* and CUDA_VISIBLE_DEVICES are set by the platform`;
    if (typeof text !== 'string') return `must have texts as values; that of ${shown} is none`;
    if (text.length > maxValue || text.includes('\0'))
      return `must have values of at most ${maxValue} characters without U+0000; see ${shown}`;
    if (!text.isWellFormed()) return `must have values of well-formed Unicode; see ${shown}`;
    size += name.length + Buffer.byteLength(text);
  }
  return size > 32_768 ? 'must be at most 32 KiB in all' : null;
}
