import pg from 'pg';
import ts from 'typescript';
import type { Column } from './describe-statement.js';

const { builtins } = pg.types;

/** What pg makes of a value of a type of PostgreSQL; what is not here it leaves a text. */
const readAs = new Map<number, 'number' | 'boolean' | 'Date' | 'Buffer' | 'json'>([
  [builtins.INT2, 'number'],
  [builtins.INT4, 'number'],
  [builtins.OID, 'number'],
  [builtins.FLOAT4, 'number'],
  [builtins.FLOAT8, 'number'],
  [builtins.BOOL, 'boolean'],
  [builtins.TIMESTAMP, 'Date'],
  [builtins.TIMESTAMPTZ, 'Date'],
  [builtins.DATE, 'Date'],
  [builtins.BYTEA, 'Buffer'],
  [builtins.JSON, 'json'],
  [builtins.JSONB, 'json'],
]);
/**
 * Arrays of numbers and of booleans, as PostgreSQL numbers them; others are arrays of texts where pg knows them at all.
 */
const arrays = new Map<number, 'number' | 'boolean' | 'Date' | 'string'>([
  [1000, 'boolean'],
  [1005, 'number'],
  [1007, 'number'],
  [1021, 'number'],
  [1022, 'number'],
  [1009, 'string'],
  [1015, 'string'],
  [1016, 'string'],
  [1231, 'string'],
  [2951, 'string'],
  [1115, 'Date'],
  [1185, 'Date'],
]);

/** What of the type that a call states for its rows is not what the statement returns. */
export function rowFaults(row: ts.Type, columns: readonly Column[], checker: ts.TypeChecker): string[] {
  return propertiesOf(row, checker).flatMap(([name, type, isOptional]) => {
    const column = columns.find((one) => one.name === name);
    if (!column)
      return isOptional
        ? []
        : [`has no column ${name}: it returns ${columns.map((one) => one.name).join(', ') || 'none'}`];
    const array = arrays.get(column.type);
    const kind = readAs.get(column.type) ?? 'string';
    if (kind === 'json') return [];
    const stated = type.isUnion() ? type.types : [type];
    const wrong = stated.filter(
      (part) => !(array ? isArrayOf(part, array, checker) : isOf(part, kind, checker)) && !isEmpty(part),
    );
    return wrong.length === 0
      ? []
      : [`returns ${name} as ${array ? `${array}[]` : kind}, not as ${checker.typeToString(type)}`];
  });
}

/**
 * Properties whose type says null where a statement never returns it, or the reverse: of a statement with several texts
 * where all of them agree, since its parts may be joined in ways in which it never sends them.
 */
export function nullFaults(row: ts.Type, texts: readonly (readonly Column[])[], checker: ts.TypeChecker): string[] {
  return propertiesOf(row, checker).flatMap(([name, type]) => {
    const has = (flags: ts.TypeFlags) =>
      (type.isUnion() ? type.types : [type]).some((part) => (part.flags & flags) !== 0);
    const areAll = (isNullable: boolean) =>
      texts.length > 0 && texts.every((columns) => columns.find((one) => one.name === name)?.isNullable === isNullable);
    if (areAll(false) && has(ts.TypeFlags.Null)) return [`never returns ${name} as null`];
    if (areAll(true) && !has(ts.TypeFlags.Null | ts.TypeFlags.Any | ts.TypeFlags.Unknown))
      return [`returns ${name} as null too, not only as ${checker.typeToString(type)}`];
    return [];
  });
}

/** Of a union of rows: what all of them have. */
function propertiesOf(row: ts.Type, checker: ts.TypeChecker): [name: string, type: ts.Type, isOptional: boolean][] {
  return checker
    .getPropertiesOfType(row)
    .map((property) => [
      property.name,
      checker.getTypeOfSymbol(property),
      (property.flags & ts.SymbolFlags.Optional) !== 0,
    ]);
}

function isEmpty(type: ts.Type): boolean {
  return (type.flags & (ts.TypeFlags.Null | ts.TypeFlags.Undefined)) !== 0;
}

function isOf(
  type: ts.Type,
  kind: 'number' | 'boolean' | 'Date' | 'Buffer' | 'string',
  checker: ts.TypeChecker,
): boolean {
  if (kind === 'number') return (type.flags & ts.TypeFlags.NumberLike) !== 0;
  if (kind === 'boolean') return (type.flags & ts.TypeFlags.BooleanLike) !== 0;
  if (kind === 'string') return (type.flags & ts.TypeFlags.StringLike) !== 0;
  return checker.typeToString(type).startsWith(kind);
}

function isArrayOf(type: ts.Type, kind: 'number' | 'boolean' | 'Date' | 'string', checker: ts.TypeChecker): boolean {
  const element = checker.getIndexTypeOfType(type, ts.IndexKind.Number);
  if (!element) return false;
  return (element.isUnion() ? element.types : [element]).every((part) => isEmpty(part) || isOf(part, kind, checker));
}
