import type { OpenAPIObject } from '@nestjs/swagger';

type Operation = NonNullable<OpenAPIObject['paths'][string]['get']>;
type Schemas = NonNullable<NonNullable<OpenAPIObject['components']>['schemas']>;

/**
 * What holds for the bodies of requests alone: one of which no field is required may be left out, but not where it says what to change;
 * that one has a field at least. Unknown fields are refused, in whatever the body holds.
 */
export function describeBody({ requestBody }: Operation, method: string, schemas: Schemas): void {
  if (!requestBody || '$ref' in requestBody) return;
  const reference = requestBody.content['application/json']?.schema;
  const schema = reference && '$ref' in reference ? schemas[nameIn(reference.$ref)] : undefined;
  if (!schema || '$ref' in schema) return;
  requestBody.required = method === 'put' || schema.required !== undefined;
  if (method === 'put' && schema.required === undefined) schema.minProperties = 1;
  close(reference, schemas);
}

function close(value: unknown, schemas: Schemas): void {
  if (typeof value !== 'object' || value === null) return;
  const schema = '$ref' in value ? schemas[nameIn(String(value.$ref))] : undefined;
  if (!schema) {
    for (const child of Object.values(value)) close(child, schemas);
  } else if (!('additionalProperties' in schema)) {
    Object.assign(schema, { additionalProperties: false });
    close(schema, schemas);
  }
}

function nameIn(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}
