import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';

let gateway: GatewayUnderTest;
let document: OpenAPIObject;
beforeAll(async () => {
  gateway = await startGateway();
  document = (await gateway.call<OpenAPIObject>('GET', '/api/openapi.json')).body;
});
afterAll(() => gateway.close());

/** `email` is of ASCII alone (JSON Schema, section 7.3.2), which validators of clients enforce. */
const formats = { email: /^[\x21-\x7e]+@[\x21-\x7e]+$/, 'idn-email': /^[^\s@]+@[^\s@]+$/u };

it('an e-mail address of any script is as the document says, wherever it stands', () => {
  const schemas = new Ajv2020({ strict: false, formats });
  const named = Object.entries(document.components?.schemas ?? {}).flatMap(([name, schema]) => {
    const email = 'properties' in schema ? schema.properties?.['email'] : undefined;
    return email ? [[name, schemas.validate(email, 'zoë@example.com')] as const] : [];
  });
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter(([, isValid]) => !isValid)).toEqual([]);
});
