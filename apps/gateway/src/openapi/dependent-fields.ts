import type { Schema, Schemas } from './operations.js';

/**
 * What a field of a request depends on in the fields beside it, as JSON Schema says it (2020-12, 10.2.2 and 6.5), by
 * the name of the schema. Without alternatives of whole objects, of which generators of clients make types. The
 * services check it.
 */
const dependentFields: Record<string, object> = {
  BaremetalCredential: {
    minProperties: 1,
    dependentSchemas: { password: { maxProperties: 1 } },
    dependentRequired: { passphrase: ['private_key'] },
  },
  BaremetalRequirements: { minProperties: 1 },
  BaremetalSpecs: {
    if: { properties: { gpu_count: { const: 0 } } },
    then: { properties: { gpu_model: { type: 'null' } } },
    else: { properties: { gpu_model: { type: 'string' } }, required: ['gpu_model'] },
  },
  ExposeService: {
    if: { properties: { ssl_enabled: { const: true } }, required: ['ssl_enabled'] },
    then: { properties: { protocol: { anyOf: [{ const: 'HTTP' }, { const: 'TCP' }] } } },
  },
  RegisterBaremetalNode: {
    if: { properties: { tenant_sudo: { const: true } }, required: ['tenant_sudo'] },
    then: {
      properties: { credential: { properties: { private_key: { type: 'string' } }, required: ['private_key'] } },
    },
  },
  // One field at least besides those that name the service.
  UpdateExposedService: { minProperties: 2, dependentSchemas: { pod_name: { minProperties: 3 } } },
};

export function describeDependentFields(schemas: Schemas): void {
  for (const [name, rules] of Object.entries(dependentFields)) {
    const schema = schemas[name];
    if (!schema) throw new Error(`The document has no schema ${name}.`);
    Object.assign(schema as Schema, rules);
  }
}
