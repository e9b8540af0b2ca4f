import { globSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from '@jest/globals';
import { plainToInstance } from 'class-transformer';
import { getMetadataStorage, validateSync } from 'class-validator';
import type { Wire } from './contract.js';

/** What the OpenAPI document states of a field, as `ApiProperty` keeps it. */
interface Stated {
  readonly name: string;
  readonly required: boolean;
  readonly nullable?: boolean;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
}

/** The value that a field is given, and whether its schema allows it; undefined where it has no such bound. */
type Probe = (stated: Stated) => [value: unknown, isAllowed: boolean] | undefined;

const here = import.meta.dirname;
const paths = globSync('**/*.ts', { cwd: here }).filter((path) => !path.endsWith('.spec.ts'));
const modules = (await Promise.all(paths.map((path) => import(pathToFileURL(join(here, path)).href)))) as Record<
  string,
  unknown
>[];
/** Without those that have a `fromWire` of their own. */
const types = [...new Set(modules.flatMap((module) => Object.values(module)))].filter(
  (type) => isWire(type) && !('fromWire' in type),
) as Wire[];
const fields = new Map(types.map((type) => [type, fieldsOf(type)]));

function isWire(value: unknown): value is Wire {
  return (
    typeof value === 'function' &&
    Reflect.hasMetadata('swagger/apiModelPropertiesArray', (value.prototype as object | undefined) ?? {})
  );
}

/** The fields that class-validator checks: others are only ever answered. */
function fieldsOf(type: Wire): Stated[] {
  const names = Reflect.getMetadata('swagger/apiModelPropertiesArray', type.prototype as object) as string[];
  const checked = new Set(rulesOf(type).map(({ propertyName }) => propertyName));
  return names.flatMap((marked) => {
    const name = marked.slice(1);
    const stated = Reflect.getMetadata('swagger/apiModelProperties', type.prototype as object, name) as Omit<
      Stated,
      'name'
    >;
    return checked.has(name) ? [{ ...stated, name }] : [];
  });
}

function rulesOf(type: Wire) {
  return getMetadataStorage().getTargetValidationMetadatas(type, '', false, false);
}

/** Where what a class takes is not what its schema states, when all of its fields are given what the probe says. */
function wrongIn(type: Wire, what: string, probe: Probe): string[] {
  const probed = (fields.get(type) ?? []).flatMap((stated) => {
    const given = probe(stated);
    return given ? [{ name: stated.name, value: given[0], isAllowed: given[1] }] : [];
  });
  const faults = validateSync(
    plainToInstance(type, Object.fromEntries(probed.map(({ name, value }) => [name, value]))),
  );
  const refused = new Set(faults.filter(({ constraints }) => constraints).map(({ property }) => property));
  return probed
    .filter(({ name, isAllowed }) => refused.has(name) === isAllowed)
    .map(({ name, isAllowed }) => `${type.name}.${name} ${isAllowed ? 'refuses' : 'takes'} ${what}`);
}

/** The step from a bound to the next value beyond it. */
const stepOf = (bound: number) => (Number.isInteger(bound) ? 1 : 0.01);
/** Whether a text can be a value of the field at all. */
const isOfForm = (text: string, { pattern, format }: Stated) =>
  format === undefined && (pattern === undefined || new RegExp(pattern, 'u').test(text));

const probes: [string, Probe][] = [
  ['its minimum', ({ minimum }) => (minimum === undefined ? undefined : [minimum, true])],
  ['less than its minimum', ({ minimum }) => (minimum === undefined ? undefined : [minimum - stepOf(minimum), false])],
  ['its maximum', ({ maximum }) => (maximum === undefined ? undefined : [maximum, true])],
  ['more than its maximum', ({ maximum }) => (maximum === undefined ? undefined : [maximum + 1, false])],
  ['its minLength', (stated) => ofLength(stated, stated.minLength)],
  ['less than its minLength', ({ minLength }) => (minLength ? ['a'.repeat(minLength - 1), false] : undefined)],
  ['its maxLength', (stated) => ofLength(stated, stated.maxLength)],
  [
    'more than its maxLength',
    ({ maxLength }) => (maxLength === undefined ? undefined : ['a'.repeat(maxLength + 1), false]),
  ],
  ['nothing', ({ required }) => [undefined, !required]],
  ['null', ({ nullable = false }) => [null, nullable]],
];

function ofLength(stated: Stated, length: number | undefined): [string, true] | undefined {
  if (length === undefined || !isOfForm('a'.repeat(length), stated)) return undefined;
  return ['a'.repeat(length), true];
}

it('finds the fields', () => {
  expect([...fields.values()].flat().length).toBeGreaterThan(500);
});

it.each(probes)('law: a field takes %s where its schema says so, and only there', (what, probe) => {
  expect(types.flatMap((type) => wrongIn(type, what, probe))).toEqual([]);
});

/** By the rules themselves: lists of a hundred thousand entries are not made. */
it('law: a list takes as many entries as its schema says', () => {
  const boundOf = (type: Wire, field: string, rule: string) =>
    rulesOf(type).find(({ propertyName, name }) => propertyName === field && name === rule)?.constraints?.[0] as
      | number
      | undefined;
  const wrong = types.flatMap((type) =>
    (fields.get(type) ?? [])
      .filter(({ name, minItems, maxItems }) => {
        return (
          (boundOf(type, name, 'arrayMinSize') ?? 0) !== (minItems ?? 0) ||
          boundOf(type, name, 'arrayMaxSize') !== maxItems
        );
      })
      .map(({ name }) => `${type.name}.${name}`),
  );
  expect(wrong).toEqual([]);
});
