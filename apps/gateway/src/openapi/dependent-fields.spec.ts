import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';

let gateway: GatewayUnderTest;
let schemas: Ajv2020;
beforeAll(async () => {
  gateway = await startGateway();
  const { body } = await gateway.call<OpenAPIObject>('GET', '/api/openapi.json');
  schemas = new Ajv2020({ strict: false, validateFormats: false });
  schemas.addSchema({ $id: 'api', components: body.components });
});
afterAll(() => gateway.close());

const size = { cpu_cores: 1, memory_gb: 1 };
const node = { name: 'a', region_id: '1', host: 'a', specs: { ...size, gpu_count: 0 } };
const service = { pod_name: 'a-qwert', service_name: 'a', port: 1 };
const pod = { team_id: 'a', subscription_id: '1', name: 'a', image: 'a' };

it.each([
  ['BaremetalCredential', { password: 'a' }, true],
  ['BaremetalCredential', { private_key: 'a' }, true],
  ['BaremetalCredential', { private_key: 'a', passphrase: 'b' }, true],
  ['BaremetalCredential', {}, false],
  ['BaremetalCredential', { passphrase: 'b' }, false],
  ['BaremetalCredential', { password: 'a', passphrase: 'b' }, false],
  ['BaremetalCredential', { password: 'a', private_key: 'b' }, false],
  ['BaremetalRequirements', { gpu_count: 1 }, true],
  ['BaremetalRequirements', {}, false],
  ['BaremetalSpecs', { ...size, gpu_count: 0 }, true],
  ['BaremetalSpecs', { ...size, gpu_count: 0, gpu_model: null }, true],
  ['BaremetalSpecs', { ...size, gpu_count: 8, gpu_model: 'H100-80GB' }, true],
  ['BaremetalSpecs', { ...size, gpu_count: 0, gpu_model: 'H100-80GB' }, false],
  ['BaremetalSpecs', { ...size, gpu_count: 8 }, false],
  ['BaremetalSpecs', { ...size, gpu_count: 8, gpu_model: null }, false],
  ['RegisterBaremetalNode', { ...node, tenant_sudo: true, credential: { private_key: 'a' } }, true],
  ['RegisterBaremetalNode', { ...node, tenant_sudo: false, credential: { password: 'a' } }, true],
  ['RegisterBaremetalNode', { ...node, credential: { password: 'a' } }, true],
  ['RegisterBaremetalNode', { ...node, tenant_sudo: true, credential: { password: 'a' } }, false],
  ['ExposeService', { ...service, protocol: 'UDP' }, true],
  ['ExposeService', { ...service, protocol: 'UDP', ssl_enabled: false }, true],
  ['ExposeService', { ...service, protocol: 'TCP', ssl_enabled: true }, true],
  ['ExposeService', { ...service, protocol: 'UDP', ssl_enabled: true }, false],
  ['ExposeService', { ...service, protocol: 'HTTPS', ssl_enabled: true }, false],
  ['UpdateExposedService', { service_id: '1', port: 1 }, true],
  ['UpdateExposedService', { service_id: '1', pod_name: 'a', port: 1 }, true],
  ['UpdateExposedService', { service_id: '1' }, false],
  ['UpdateExposedService', { service_id: '1', pod_name: 'a' }, false],
  [
    'CreatePod',
    { ...pod, env: { EPOCHS: '1', ld: '', CUDA_VISIBLE_DEVICES_OF: '' }, command: ['a'], ports: [1] },
    true,
  ],
  ['CreatePod', { ...pod, env: { '1A': '' } }, false],
  ['CreatePod', { ...pod, env: { Nvidia_A: '' } }, false],
  ['CreatePod', { ...pod, env: { CUDA_visible_devices: '' } }, false],
  ['CreatePod', { ...pod, env: { A: 'x'.repeat(8_193) } }, false],
  ['CreatePod', { ...pod, env: { A: '\0' } }, false],
  ['CreatePod', { ...pod, command: ['\0'] }, false],
  ['CreatePod', { ...pod, command: ['x'.repeat(4_097)] }, false],
  ['CreatePod', { ...pod, ports: [0] }, false],
])('the schema of %s says what the services accept: %j is %s', (name, value, isValid) => {
  expect(schemas.validate({ $ref: `api#/components/schemas/${name}` }, value)).toBe(isValid);
});
