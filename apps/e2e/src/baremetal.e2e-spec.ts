import { beforeAll, describe, expect, it } from '@jest/globals';
import ssh2 from 'ssh2';
import { adminKey, call, createTeam, fresh, succeed, until, type Refusal } from './client.js';

const encryptedKey = ssh2.utils.generateKeyPairSync('ed25519', {
  passphrase: 'secret',
  cipher: 'aes256-cbc',
  rounds: 16,
}).private;

interface NodeView {
  node_id: string;
  status: string;
  reason: string | null;
  instance_id: string | null;
}
interface InstanceView {
  instance_id: string;
  status: string;
  reason: string | null;
  error: { code: string; step: string } | null;
  attempts: { action: string; step: string; outcome: string }[];
}

let regionId: string;
let tenant: Awaited<ReturnType<typeof createTeam>>;
let other: Awaited<ReturnType<typeof createTeam>>;
beforeAll(async () => {
  await until(
    () => call('GET', '/region', { key: adminKey }),
    ({ status }) => status === 200,
  );
  const body = { region_name: fresh('region') };
  regionId = (await succeed<{ region_id: string }>('POST', '/region', { key: adminKey, body })).region_id;
  tenant = await createTeam('Bare metal', ['team_owner', 'member', 'viewer', 'billing_viewer']);
  other = await createTeam('Others', ['team_owner', 'member']);
});

/** A simulated host of a model of its own; its name says what goes wrong. */
async function register(
  faults = '',
): Promise<{ nodeId: string; model: string; node: (status: string) => Promise<NodeView> }> {
  const model = fresh('model').slice(0, 60);
  const body = {
    name: `${fresh('metal')}.${faults}`,
    region_id: regionId,
    host: `${fresh('metal')}.example`,
    driver: 'simulated',
    credential: { password: 'operator' },
    specs: { gpu_model: model, gpu_count: 8, cpu_cores: 128, memory_gb: 1024 },
  };
  const { status, body: made } = await call<NodeView>('POST', '/baremetal/node', { key: adminKey, body });
  expect([status, made.status]).toEqual([202, 'Checking']);
  const node = (wanted: string) =>
    until(
      () => succeed<NodeView>('GET', `/baremetal/node/${made.node_id}`, { key: adminKey }),
      (found) => found.status === wanted,
    );
  await node('Available');
  return { nodeId: made.node_id, model, node };
}

const ask = (specs: object, key = tenant.keys.member ?? '') =>
  call<InstanceView & Refusal>('POST', '/baremetal/request', {
    key,
    body: { team_id: tenant.team.id, region_id: regionId, name: 'training', specs },
  });
const read = <Body>(path: string, key = tenant.keys.member ?? '') => call<Body & Refusal>('GET', path, { key });
const instance = (id: string, wanted: string) =>
  until(
    async () => (await read<InstanceView>(`/baremetal/${id}`)).body,
    ({ status }) => status === wanted,
    60_000,
  );

describe('a bare-metal host', () => {
  it('is requested, used, billed and released, and nobody else’s meanwhile', async () => {
    const { model, node, nodeId } = await register();
    const asked = await ask({ gpu_model: model.toUpperCase(), gpu_count: 4 });
    expect([asked.status, asked.body.status]).toEqual([202, 'Requested']);
    const id = asked.body.instance_id;
    await instance(id, 'Active');
    expect((await node('In service')).instance_id).toBe(id);
    const credentials = await read<{ ssh_password: string; port: number }>(`/baremetal/${id}/credentials`);
    expect([credentials.status, credentials.headers['cache-control'], credentials.body.port]).toEqual([
      200,
      'no-store',
      22,
    ]);
    expect((await read(`/baremetal/${id}/credentials`, tenant.keys.viewer)).status).toBe(403);
    for (const path of [`/baremetal/${id}`, `/baremetal/${id}/credentials`, `/baremetal?team_id=${tenant.team.id}`]) {
      expect((await read(path, other.keys.member)).status).toBe(404);
    }
    expect((await call('DELETE', `/baremetal/${id}`, { key: other.keys.team_owner ?? '' })).status).toBe(404);
    expect(
      (await read<{ data: InstanceView[] }>(`/baremetal?team_id=${tenant.team.id}`, tenant.keys.viewer)).body.data,
    ).toMatchObject([{ instance_id: id }]);
    expect((await call('DELETE', `/baremetal/node/${nodeId}`, { key: adminKey })).status).toBe(409);
    const day = new Date().toISOString().slice(0, 10);
    const sku = `baremetal.${model.toLowerCase()}-x8`;
    const bill = `/team-billing/${tenant.team.id}/${day}T00:00:00/${day}T23:59:59/daily`;
    await until(
      async () => JSON.stringify((await read(bill, tenant.keys.billing_viewer)).body),
      (text) => text.includes(sku),
    );
    const released = await call<InstanceView>('DELETE', `/baremetal/${id}`, { key: tenant.keys.member ?? '' });
    expect([released.status, released.body.status]).toEqual([202, 'Releasing']);
    await instance(id, 'Released');
    await node('Available');
    expect((await call('DELETE', `/baremetal/node/${nodeId}`, { key: adminKey })).status).toBe(204);
  });

  it('whose password step fails ends the request with its reason, and is free again by itself', async () => {
    const { model, node } = await register('password-fail');
    const { instance_id } = (await ask({ gpu_model: model })).body;
    const failed = await instance(instance_id, 'Failed');
    expect(failed.error).toMatchObject({ code: 'password_failed', step: 'set_password' });
    // A busy machine may interrupt a step, which is then tried again.
    const ended = failed.attempts.filter(({ outcome }) => outcome !== 'interrupted');
    expect([...new Set(ended.map(({ action, step, outcome }) => `${action} ${step} ${outcome}`))]).toEqual([
      'provision reach succeeded',
      'provision create_user succeeded',
      'provision place_keys succeeded',
      'provision set_password failed',
      'rollback revoke succeeded',
    ]);
    expect((await node('Available')).instance_id).toBeNull();
  });

  it('that no specs match is refused at once, with what is not met', async () => {
    const { model } = await register();
    const { status, body } = await ask({ gpu_model: model, gpu_count: 9 });
    expect([status, body.code, body.detail]).toEqual([
      422,
      'spec_mismatch',
      expect.stringContaining('gpu_count at least 9 (it has 8)'),
    ]);
  });

  it('is not registered with what is no host, or twice', async () => {
    const { nodeId } = await register();
    const known = await succeed<{ name: string; host: string; specs: object }>('GET', `/baremetal/node/${nodeId}`, {
      key: adminKey,
    });
    const post = (body: object) =>
      call<Refusal>('POST', '/baremetal/node', {
        key: adminKey,
        body: {
          name: fresh('bad'),
          region_id: regionId,
          host: `${fresh('bad')}.example`,
          credential: { password: 'x' },
          specs: { gpu_model: 'L4-24GB', gpu_count: 1, cpu_cores: 1, memory_gb: 1 },
          ...body,
        },
      });
    expect((await post({ host: known.host })).status).toBe(409);
    expect((await post({ host: known.host.toUpperCase() })).status).toBe(409);
    expect((await post({ name: known.name })).status).toBe(409);
    const noHosts = ['ssh://a.example', 'root@a.example', 'a.example:22', 'a.example/x', '-oProxyCommand=x', 'a b', ''];
    const noAddresses = ['169.254.169.254', '::ffff:169.254.169.254', 'fd00:ec2::254', '0.0.0.0', '224.0.0.1'];
    for (const host of [...noHosts, ...noAddresses]) {
      const { status, body } = await post({ host });
      expect([host, status, body.errors?.[0]?.path]).toEqual([host, 400, 'host']);
    }
    const bad = [
      { credential: {} },
      { credential: { password: 'x', private_key: 'y' } },
      { credential: { private_key: 'none' } },
      { credential: { private_key: encryptedKey } },
      { credential: { private_key: encryptedKey, passphrase: 'another' } },
      { port: 0 },
      { port: 65_536 },
      { specs: { gpu_model: 'L4-24GB', gpu_count: 1.5, cpu_cores: 1, memory_gb: 1 } },
      { specs: { gpu_model: 'L4-24GB', gpu_count: -1, cpu_cores: 1, memory_gb: 1 } },
    ];
    for (const body of bad) expect([body, (await post(body)).status]).toEqual([body, 400]);
    expect((await call('POST', '/baremetal/node', { key: tenant.keys.team_owner ?? '', body: {} })).status).toBe(400);
    expect((await call('GET', '/baremetal/node', { key: tenant.keys.team_owner ?? '' })).status).toBe(403);
  });
});
