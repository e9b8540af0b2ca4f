import type { OpenAPIObject } from '@nestjs/swagger';
import { numberedIdPattern, textPatterns } from '@atoll/contracts';
import { describeDependentFields } from './dependent-fields.js';
import {
  operationsOf,
  schemaNamedBy,
  schemaReference,
  walk,
  type Method,
  type Operation,
  type Schema,
  type Schemas,
} from './operations.js';

const numberedId = 'NumericId';

const numberedIdSchema = schemaReference(numberedId);

/**
 * Rules for requests only. A body without required fields may be left out, except in updates, which need at least one
 * field. Unknown fields are refused at any depth. Numeric ids may be numbers.
 */
export function describeRequests(document: OpenAPIObject): void {
  const schemas = document.components?.schemas ?? {};
  const sent = new Set<string>();
  for (const { operation, method } of operationsOf(document)) {
    describeBody(operation, method, schemas);
    const { requestBody, parameters } = operation;
    acceptNumbers(parameters);
    for (const name of schemasIn(requestBody, schemas)) sent.add(name);
  }
  for (const [name, schema] of Object.entries(schemas)) {
    if (sent.has(name)) closeSchema(schema as Schema);
    else forgetTextPatterns(schema);
  }
  describeDependentFields(schemas);
  schemas[numberedId] = numberedIdDefinition;
}

const numberedIdDefinition: Schema = {
  description:
    'Id of a region, a GPU service, a node, a GPU, a pool, a subscription, a workload: a positive integer, as a number or as its digits.',
  type: ['string', 'integer'] as never,
  pattern: numberedIdPattern,
  minimum: 1,
  maximum: 999_999_999_999_999,
  example: '42',
};

/** For a document of which no answer has a numeric id as text: in requests they may be numbers. */
export function acceptNumbersInRequests({ paths, components: { schemas = {} } = {} }: OpenAPIObject): void {
  acceptNumbers(paths);
  acceptNumbers(schemas);
  schemas[numberedId] = numberedIdDefinition;
}

function describeBody({ requestBody }: Operation, method: Method, schemas: Schemas): void {
  if (!requestBody || '$ref' in requestBody) return;
  const schema = schemas[schemaNamedBy(requestBody.content['application/json']?.schema) ?? ''];
  if (!schema || '$ref' in schema) return;
  requestBody.required = method === 'put' || schema.required !== undefined;
  if (method === 'put' && schema.required === undefined) schema.minProperties = 1;
}

/** The names of the schemas that a value refers to, directly or by others. */
function schemasIn(value: unknown, schemas: Schemas, found = new Set<string>()): Set<string> {
  for (const part of walk(value)) {
    const name = schemaNamedBy(part);
    if (name === undefined || found.has(name)) continue;
    found.add(name);
    schemasIn(schemas[name], schemas, found);
  }
  return found;
}

function closeSchema(schema: Schema): void {
  if (schema.type === 'object' && schema.additionalProperties === undefined) schema.additionalProperties = false;
  acceptNumbers(schema);
}

/** Numeric ids are strings in responses; a request may send them as numbers too. */
function acceptNumbers(value: unknown): void {
  for (const part of walk(value)) {
    for (const [name, child] of Object.entries(part) as [string, unknown][]) {
      const id = isNumberedId(child) ? idSchemaLike(child) : undefined;
      if (id) Object.assign(part, { [name]: id });
    }
  }
}

interface IdSchema {
  type: 'string';
  pattern: string;
  description?: string;
  example?: unknown;
}

function isNumberedId(value: unknown): value is IdSchema {
  const { type, pattern } = (value ?? {}) as Partial<IdSchema>;
  return type === 'string' && pattern !== undefined && wordsBeside(pattern) !== undefined;
}

/** The words that an id’s pattern allows besides numbers; undefined where it is another pattern. */
function wordsBeside(pattern: string): string[] | undefined {
  if (pattern === numberedIdPattern) return [];
  const [number, ...words] = /^\^\(\?:(.*)\)\$$/.exec(pattern)?.[1]?.split('|') ?? [];
  return `^${number}$` === numberedIdPattern ? words : undefined;
}

function idSchemaLike({ pattern, description, example }: IdSchema): object {
  const words = wordsBeside(pattern) ?? [];
  const kept = { ...(description !== undefined && { description }), ...(example !== undefined && { example }) };
  if (words.length === 0) return { ...numberedIdSchema, ...kept };
  return { anyOf: [numberedIdSchema, { type: 'string', enum: words }], ...kept };
}

/** What the platform returns needs no pattern to be read. */
function forgetTextPatterns(schema: unknown): void {
  for (const part of walk(schema) as Generator<{ pattern?: string }>) {
    if (typeof part.pattern === 'string' && textPatterns.has(part.pattern)) delete part.pattern;
  }
}
