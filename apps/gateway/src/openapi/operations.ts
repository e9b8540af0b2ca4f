import type { OpenAPIObject } from '@nestjs/swagger';
import { unkept } from '../answers/answers.js';

export type Operation = NonNullable<OpenAPIObject['paths'][string]['get']>;
export type Parameter = Exclude<NonNullable<Operation['parameters']>[number], { $ref: string }>;
export type Response = Exclude<Operation['responses'][string], { $ref: string } | undefined>;
export type Schemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>;
export type Schema = Exclude<Schemas[string], { $ref: string }>;

const methods = ['get', 'post', 'put', 'delete'] as const;
export type Method = (typeof methods)[number];

/** Every operation of the document. */
export function operationsOf({ paths }: OpenAPIObject): { path: string; method: Method; operation: Operation }[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = item[method];
      return operation ? [{ path, method, operation }] : [];
    }),
  );
}

/**
 * Whether an answer is kept under an `Idempotency-Key`: not for who has no caller, as at log-in, since there is nothing
 * to keep it under.
 */
export function keepsAnswer(operation: Operation, method: Method): boolean {
  const hasCaller = !operation.security?.some((scheme) => Object.keys(scheme).length === 0);
  return method === 'post' && hasCaller && !(unkept in operation);
}

/** The name of the schema that a value refers to; undefined where it is not a reference. */
export function schemaNamedBy(value: unknown): string | undefined {
  const reference = typeof value === 'object' && value !== null && '$ref' in value ? String(value.$ref) : '';
  return /^#\/components\/schemas\/(.+)$/.exec(reference)?.[1];
}

export function schemaReference(name: string): { $ref: string } {
  return { $ref: `#/components/schemas/${name}` };
}

/** A value and all values in it, each once. */
export function* walk(value: unknown): Generator<object> {
  if (typeof value !== 'object' || value === null) return;
  yield value;
  for (const child of Object.values(value)) yield* walk(child);
}
