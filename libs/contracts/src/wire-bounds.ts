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
 * class-validator takes for declared) and for what is nested too deep. Returns a copy for the validator and leaves the
 * input as it is: in the copy, fields that the class does not declare are left out where they are to be omitted, and
 * where a field takes neither, an object or a list is replaced by an empty one, so that the validator refuses it
 * without reading it.
 */
export function withinBounds(type: Wire, plain: object, unknownFields: 'refuse' | 'omit'): object {
  return new Bounds(unknownFields === 'omit').read(plain as Fields, type);
}

class Bounds {
  private readonly unknown: FieldError[] = [];
  private readonly tooLong: FieldError[] = [];
  private withoutClass = 0;

  constructor(private readonly omits: boolean) {}

  read(plain: Fields, type: Wire): Fields {
    const copy = this.object(plain, type, '', 1);
    if (this.tooLong.length > 0) throw invalidInput(this.tooLong);
    return copy;
  }

  private object(fields: Fields, type: Wire, path: string, depth: number): Fields {
    requireDepth(path, depth);
    const shape = shapeOf(type);
    const names = Object.keys(fields);
    if (!this.omits) requireNames(names, path);
    const copy: Fields = {};
    for (const name of names) {
      const value = fields[name];
      const here = path ? `${path}.${name}` : name;
      const field = shape.get(name);
      if (field) copy[name] = isObject(value) ? this.member(value, field, here, depth + 1) : value;
      else if (!this.omits) copy[name] = this.undeclared(value, name, here);
    }
    return copy;
  }

  /** A fault, which class-validator finds too, whatever the value is. */
  private undeclared(value: unknown, name: string, path: string): unknown {
    if (name in Object.prototype) throw invalidInput([unknownField(path)]);
    this.unknown.push(unknownField(path));
    if (this.unknown.length > mostNames) throw invalidInput(this.unknown);
    return isObject(value) ? null : value;
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
    return entries.map((entry, at) => {
      if (!isObject(entry)) return entry;
      return Array.isArray(entry) && type ? [] : this.single(entry, field, `${path}.${at}`, depth + 1);
    });
  }

  private single(value: object, { type, isScalar }: FieldShape, path: string, depth: number): object {
    if (type) return this.object(value as Fields, type, path, depth);
    if (isScalar) return Array.isArray(value) ? [] : {};
    return this.any(value, path, depth);
  }

  /** A value of which no class says what it holds. */
  private any(value: object, path: string, depth: number): object {
    requireDepth(path, depth);
    if (Array.isArray(value)) return value.map((entry, at) => this.part(entry, path, at, depth));
    const names = Object.keys(value);
    requireNames(names, path);
    const copy: Fields = {};
    for (const name of names) {
      if (!(name in Object.prototype)) copy[name] = this.part((value as Fields)[name], path, name, depth);
      else if (!this.omits) throw invalidInput([unknownField(`${path}.${name}`)]);
    }
    return copy;
  }

  private part(value: unknown, path: string, name: string | number, depth: number): unknown {
    if (!isObject(value)) return value;
    this.withoutClass += 1;
    if (this.withoutClass > mostWithoutClass) throw tooMany(path);
    return this.any(value, `${path}.${name}`, depth + 1);
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
