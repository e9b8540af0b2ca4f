import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { baremetalNodes, type BaremetalCredential, type RegisterBaremetalNode } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { generateKeyPair } from '@atoll/ssh';
import { memberOf, operator } from '@atoll/testing';
import ssh2 from 'ssh2';
import { errorOf } from '../../gpuaas-fixture.js';
import { BaremetalFixture } from '../baremetal-fixture.js';

let fixture: BaremetalFixture;
beforeAll(async () => {
  fixture = await BaremetalFixture.start({ allowLoopbackHosts: false });
});
afterAll(() => fixture.stop());

const specs = { gpu_model: 'L4-24GB', gpu_count: 1, cpu_cores: 1, memory_gb: 1 };
const { private: encrypted } = ssh2.utils.generateKeyPairSync('ed25519', {
  passphrase: 'secret',
  cipher: 'aes256-cbc',
  rounds: 16,
});

async function refusal(
  input: Partial<RegisterBaremetalNode>,
): Promise<[code: string, path: string | undefined, message: string]> {
  const { code, details } = await errorOf(fixture.register(input));
  const [fault] = details.errors ?? [];
  return [code, fault?.path, fault?.message ?? ''];
}

describe('a host is not registered', () => {
  it.each([
    ...['127.1', '2130706433', '0x7f000001', '0177.0.0.1', '169.16689662', '1.2.3.4.5', '256.1.1.1', 'a.1'],
    ...['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1', 'localhost', 'LOCALHOST', '169.254.1.1', 'fe80::1'],
    ...['169.254.169.254', '::ffff:169.254.169.254', 'fd00:ec2::254', '100.100.100.200', '0.0.0.0', '224.0.0.1'],
    ...['ssh://a.example', 'root@a.example', 'a.example:22', 'a.example/x', '-oProxyCommand=x', 'a b', ''],
  ])('at %j', async (host) => {
    expect(await refusal({ host })).toEqual(['invalid_input', 'host', expect.stringMatching(/^host /)]);
  });

  it.each<[string, RegisterBaremetalNode['credential'], string]>([
    ['none at all', {}, 'credential'],
    ['two', { password: 'x', private_key: 'y' }, 'credential'],
    ['one that is no key', { private_key: 'none' }, 'credential.private_key'],
    ['one that is encrypted, without its passphrase', { private_key: encrypted }, 'credential.private_key'],
    [
      'one that is encrypted, with another passphrase',
      { private_key: encrypted, passphrase: 'other' },
      'credential.private_key',
    ],
    ['a passphrase of no key', { password: 'x', passphrase: 'y' }, 'credential.passphrase'],
  ])('by a credential that is %s', async (_what, credential, path) => {
    const [code, found, message] = await refusal({ credential });
    expect([code, found]).toEqual(['invalid_input', path]);
    expect(message).not.toMatch(/BEGIN|secret|other/);
  });

  it('by a password where tenants get sudo, who can read what their host is shown; nor is that made of a node later', async () => {
    const said =
      'credential.password is not allowed where tenant_sudo is true: use private_key, which is never shown to the host';
    const password = { password: 'operator' };
    expect(await refusal({ tenant_sudo: true, credential: password })).toEqual([
      'invalid_input',
      'credential.password',
      said,
    ]);
    const key = { private_key: generateKeyPair().privateKey };
    const { node_id } = await fixture.register({ tenant_sudo: true, credential: key });
    const update = (credential: BaremetalCredential) =>
      fixture.gpuaas.call(baremetalNodes.update, { node_id, credential });
    expect(await errorOf(update(password))).toMatchObject({
      code: 'invalid_input',
      details: { errors: [{ path: 'credential.password', message: said }] },
    });
    await update(key);
    const { node_id: other } = await fixture.register({ tenant_sudo: false, credential: key });
    await fixture.gpuaas.call(baremetalNodes.update, { node_id: other, credential: password });
  });

  it.each([
    ['gpu_count', -1],
    ['gpu_count', 1.5],
    ['cpu_cores', 0],
    ['memory_gb', -5],
  ])('with %s of %d', async (field, value) => {
    expect(await refusal({ specs: { ...specs, [field]: value } })).toEqual([
      'invalid_input',
      `specs.${field}`,
      expect.any(String),
    ]);
  });

  it.each<[string, object]>([
    ['with GPUs of no model', { gpu_model: undefined }],
    ['with GPUs whose model is null', { gpu_model: null }],
    ['with a model of no GPUs', { gpu_count: 0 }],
    ['with a model that is blank', { gpu_model: ' ' }],
  ])('%s', async (_what, wrong) => {
    expect(await refusal({ specs: { ...specs, ...wrong } })).toEqual([
      'invalid_input',
      'specs.gpu_model',
      expect.any(String),
    ]);
  });

  it.each([
    ['the operator', operator],
    ['a member of a team', memberOf(newId())],
  ])('anew by a change of nothing, which %s asks for', async (_whom, caller) => {
    const { node_id } = await fixture.register();
    const { details } = await errorOf(fixture.gpuaas.call(baremetalNodes.update, { node_id }, caller));
    expect(details.errors?.map(({ path }) => path)).toEqual([
      'credential',
      'host_key',
      'maintenance',
      'retired',
      'reinstall',
      'home',
    ]);
  });

  it('twice, by its name or by its host and port, whatever their case', async () => {
    const host = `${newId()}.example`;
    const { name } = await fixture.register({ host });
    for (const again of [{ host }, { host: host.toUpperCase() }, { name }]) {
      expect((await errorOf(fixture.register(again))).code).toBe('conflict');
    }
    await fixture.register({ host, port: 2222 });
  });
});

it('hosts that hang hold up the first check of no other host', async () => {
  const running = await BaremetalFixture.start({ isRunning: true });
  try {
    const hanging = [];
    for (let number = 0; number < 20; number++)
      hanging.push(await running.register({ name: `dead-${number}.inspect-hang` }));
    const { node_id } = await running.register();
    while ((await running.node(node_id)).status !== 'Available')
      await new Promise((resolve) => setTimeout(resolve, 20));
    for (const node of hanging) expect((await running.node(node.node_id)).status).toBe('Checking');
  } finally {
    await running.stop();
  }
});
