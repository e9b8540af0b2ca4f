import { getMetadataStorage } from 'class-validator';
import type { Wire } from './contract.js';

/** What the decorators of a field say about objects and lists in its place. */
export interface FieldShape {
  /** The class of the object, or of each entry. */
  type?: Wire;
  isList?: boolean;
  /** How many entries the list may hold, and the fault of a longer one. */
  most?: { entries: number; code: string; message: string };
  /** Whether each value, or each entry, is a text, a number, a flag or null. */
  isScalar?: boolean;
}

/** Validators that refuse every object and every list. */
const ofScalars: ReadonlySet<unknown> = new Set([
  'isBoolean',
  'isEmail',
  'isIn',
  'isInt',
  'isIso8601',
  'isString',
  'isUuid',
  'matches',
]);

const ofLists: ReadonlySet<unknown> = new Set(['arrayMaxSize', 'arrayMinSize', 'isArray']);

const shapes = new WeakMap<Wire, ReadonlyMap<string, FieldShape>>();

/** The fields that a class declares. */
export function shapeOf(type: Wire): ReadonlyMap<string, FieldShape> {
  let shape = shapes.get(type);
  if (!shape) shapes.set(type, (shape = readShape(type)));
  return shape;
}

function readShape(type: Wire): ReadonlyMap<string, FieldShape> {
  const shape = new Map<string, FieldShape>();
  for (const {
    propertyName,
    name,
    each,
    constraints,
    message,
    context,
  } of getMetadataStorage().getTargetValidationMetadatas(type, '', false, false)) {
    const field = shape.get(propertyName) ?? {};
    shape.set(propertyName, field);
    if (isNesting(context)) field.type = context.nests();
    if (each || ofLists.has(name)) field.isList = true;
    if (ofScalars.has(name)) field.isScalar = true;
    const most: unknown = name === 'arrayMaxSize' ? constraints?.[0] : undefined;
    if (typeof most === 'number') {
      const sentence = typeof message === 'string' ? message : `$property must hold at most ${most} entries`;
      field.most = { entries: most, code: 'arrayMaxSize', message: sentence.replace('$property', propertyName) };
    }
  }
  return shape;
}

/** What `ValidateNested` of a field carries: the class of what stands in it. */
interface Nesting {
  nests: () => Wire;
}

/** The context for `ValidateNested`. class-validator hands it on to classes that are made of others. */
export function nests(type: () => Wire): Nesting {
  return { nests: type };
}

function isNesting(context: unknown): context is Nesting {
  return typeof context === 'object' && context !== null && 'nests' in context;
}
