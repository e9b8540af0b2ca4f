import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { operationsOf, type Operation } from './operations.js';

let gateway: GatewayUnderTest;
let document: OpenAPIObject;
beforeAll(async () => {
  gateway = await startGateway();
  document = (await gateway.call<OpenAPIObject>('GET', '/api/openapi.json')).body;
});
afterAll(() => gateway.close());

const refersTo = (value: unknown, component: string) =>
  JSON.stringify(value ?? '').includes(`#/components/${component}"`);
const offersKey = ({ parameters }: Operation) => refersTo(parameters, 'parameters/IdempotencyKey');

it('an idempotency key is offered where an answer is kept under it, with its fault, and nowhere else', () => {
  const posts = operationsOf(document).filter(({ method }) => method === 'post');
  const without = posts.filter(({ operation }) => !offersKey(operation));
  expect(without.map(({ path }) => path.replace('/api/', '')).sort()).toEqual([
    'baremetal/reinstall-callback',
    'gpuaas/{gpuaas_id}/cluster/check',
    'pods/{pod_name}/terminal',
    'user/link',
    'user/link/check',
    'user/login',
    'user/login-link',
    'user/login/passkey/begin',
    'user/login/passkey/finish',
    'user/login/second-factor',
    'user/logout',
    'user/passkeys/begin',
    'user/passkeys/finish',
    'user/password-reset',
    'user/refresh',
    'user/second-factor/begin',
    'user/second-factor/confirm',
  ]);
  for (const { path, operation } of posts)
    expect([path, '422' in operation.responses]).toEqual([path, offersKey(operation)]);
  expect(JSON.stringify(document)).not.toContain('x-unkept');
});

it('an idempotency key is read where it is offered, and elsewhere ignored, whatever its form', async () => {
  const key = gateway.services.key({ platform_admin: true });
  const headers = { 'idempotency-key': 'no key' };
  for (const { path, method, operation } of operationsOf(document)) {
    if (method !== 'post') continue;
    const { body } = await gateway.call('POST', path.replaceAll(/\{\w+\}/g, 'x'), { key, headers, body: {} });
    const isRefused = body.errors?.some((fault) => fault.path === 'Idempotency-Key') ?? false;
    expect([path, isRefused]).toEqual([path, offersKey(operation)]);
  }
});
