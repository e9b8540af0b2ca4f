import { invalidInput, type FieldError } from '@atoll/errors';
import type { Wire } from './contract.js';
import { shownPath, unknownField } from './unknown-field.js';
import { shapeOf, type FieldShape } from './wire-shape.js';

/**
 * More names than any object that is meant has (a pod's variables: 200). class-transformer compares each name with all
 * others.
 */
const mostNames = 500;
/** More objects and lists than stand in all fields of a body that may hold any (a thousand facts with attributes). */
const mostWithoutClass = 2500;
/** Deeper than any wire class, and shallow enough for what recurses. */
const maxDepth = 32;

type Fields = Record<string, unknown>;

/**
 * Follows what came from outside along its class, before anything is made of it: to make an instance of an object takes
 * a hundred times as long as to read its JSON. Throws `invalid_input` for too many names, for lists that are longer
 * than their class says, for names of every object's prototype (which class-transformer leaves out in silence or
 * class-validator takes for declared) and for what is nested too deep. Changes the input: fields that the class does
 * not declare are left out where they are to be omitted, and where a field takes neither, an object or a list is
 * replaced by an empty one, so that the validator refuses it without reading it.
 */
export function keepToBounds(type: Wire, plain: object, unknownFields: 'refuse' | 'omit'): void {
  new Bounds(unknownFields === 'omit').check(plain as Fields, type);
}

class Bounds {
  private readonly unknown: FieldError[] = [];
  private readonly tooLong: FieldError[] = [];
  private withoutClass = 0;

  constructor(private readonly omits: boolean) {}

  check(plain: Fields, type: Wire): void {
    this.object(plain, type, '', 1);
    if (this.tooLong.length > 0) throw invalidInput(this.tooLong);
  }

  private object(fields: Fields, type: Wire, path: string, depth: number): void {
    requireDepth(path, depth);
    const shape = shapeOf(type);
    const names = Object.keys(fields);
    if (!this.omits) requireNames(names, path);
    for (const name of names) {
      const here = path ? `${path}.${name}` : name;
      const field = shape.get(name);
      if (!field) this.undeclared(fields, name, here);
      else if (isObject(fields[name])) fields[name] = this.member(fields[name], field, here, depth + 1);
    }
  }

  /** A field that is not to be omitted is a fault, which class-validator finds too, whatever its value is. */
  private undeclared(fields: Fields, name: string, path: string): void {
    if (this.omits) Reflect.deleteProperty(fields, name);
    else if (name in Object.prototype) throw invalidInput([unknownField(path)]);
    else {
      this.unknown.push(unknownField(path));
      if (this.unknown.length > mostNames) throw invalidInput(this.unknown);
      if (isObject(fields[name])) fields[name] = null;
    }
  }

  /** What class-transformer gets to see of an object or a list in this field. */
  private member(value: object, field: FieldShape, path: string, depth: number): object {
    if (!Array.isArray(value)) return this.single(value, field, path, depth);
    const { most, isList, type, isScalar } = field;
    const entries: unknown[] = value;
    if (most && entries.length > most.entries) {
      this.tooLong.push({ path, code: most.code, message: most.message });
      return [];
    }
    if (!isList && (type || isScalar)) return [];
    for (const [at, entry] of entries.entries()) {
      if (!isObject(entry)) continue;
      entries[at] = Array.isArray(entry) && type ? [] : this.single(entry, field, `${path}.${at}`, depth + 1);
    }
    return entries;
  }

  private single(value: object, { type, isScalar }: FieldShape, path: string, depth: number): object {
    if (type) this.object(value as Fields, type, path, depth);
    else if (isScalar) return Array.isArray(value) ? [] : {};
    else this.any(value as Fields, path, depth);
    return value;
  }

  /** Of a value of which no class says what it holds. */
  private any(value: Fields, path: string, depth: number): void {
    requireDepth(path, depth);
    const names = Object.keys(value);
    if (!Array.isArray(value)) requireNames(names, path);
    for (const name of names) {
      const here = `${path}.${name}`;
      if (!Array.isArray(value) && name in Object.prototype) this.undeclared(value, name, here);
      else if (isObject(value[name])) {
        this.withoutClass += 1;
        if (this.withoutClass > mostWithoutClass) throw tooMany(path);
        this.any(value[name] as Fields, here, depth + 1);
      }
    }
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function requireDepth(path: string, depth: number): void {
  if (depth > maxDepth)
    throw invalidInput([
      { path: shownPath(path), code: 'maxDepth', message: `objects must not be nested deeper than ${maxDepth}` },
    ]);
}

function requireNames(names: readonly string[], path: string): void {
  if (names.length <= mostNames) return;
  const which = path ? shownPath(path) : 'an object';
  throw invalidInput([
    { path: shownPath(path), code: 'maxProperties', message: `${which} must not have more than ${mostNames} fields` },
  ]);
}

function tooMany(path: string): Error {
  const shown = shownPath(path);
  const message = `${shown} must not hold more than ${mostWithoutClass} objects and lists`;
  return invalidInput([{ path: shown, code: 'maxObjects', message }]);
}
