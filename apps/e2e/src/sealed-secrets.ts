import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { promisify } from 'node:util';
import ssh2 from 'ssh2';
import { createTeam, succeed, until, type Operated } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';

const run = promisify(execFile);
const password = 'correct horse battery staple';

/** What the platform has sealed, as those see it who use it. */
export interface Secrets {
  /** A bare-metal instance that is Active. */
  readonly instanceId: string;
  /** An access token of the operator, who has begun to add an authenticator. */
  readonly accessToken: string;
  /** A node that waits for its reinstall hook, and what the hook was given to answer with. */
  readonly reinstall: { readonly nodeId: string; readonly token: string };
  /** A pod with an environment. */
  readonly podName: string;
  /** Of the pod, with TLS. */
  readonly externalPort: number;
}

/** Takes calls as a reinstall hook and installs nothing. */
export class IdleHook {
  readonly #server: Server;
  /** The token of the first call. */
  readonly token: Promise<string>;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<string>();
    this.token = promise;
    this.#server = createServer((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => {
        resolve((JSON.parse(body) as { token: string }).token);
        response.writeHead(202).end();
      });
    });
  }

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  stop(): void {
    this.#server.close();
  }
}

/** One secret for each column that a service declares as sealed. `hook` runs. */
export async function makeSecrets(platform: Operated, hook: IdleHook, hookUrl: string): Promise<Secrets> {
  const { regionId } = await createNode({ platform });
  await setEngine(platform);
  const pod = await makePod(platform);
  return {
    ...pod,
    instanceId: await makeInstance(platform, regionId, 'H100-80GB'),
    reinstall: await makeReinstall(platform, regionId, hook, hookUrl),
    accessToken: await beginSecondFactor(platform),
  };
}

/** A container engine that is reached by TLS; none is there. */
async function setEngine(platform: Operated): Promise<void> {
  const access = { url: platform.url, key: platform.adminKey };
  const { gpuaasId } = await createNode({ platform });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const request = ['req', '-x509', ...newKey, '-subj', '/CN=engine.test', '-keyout', '-', '-out', '-'];
  const { stdout: pem } = await run('openssl', request);
  const [key = '', cert = ''] = pem.match(/-----BEGIN[^]*?-----END.*?-----\n/g) ?? [];
  const body = { driver: 'docker', url: 'https://127.0.0.1:9', ca: cert, cert, key };
  await succeed('PUT', `/gpuaas/${gpuaasId}/cluster`, { ...access, body });
}

async function makePod(platform: Operated): Promise<Pick<Secrets, 'podName' | 'externalPort'>> {
  const tenant = await createTenant('Secrets', ['member'], platform);
  const access = { url: platform.url, key: tenant.key };
  const node = await createNode({ platform });
  const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 }, platform);
  const { subscription_id } = (await tenant.subscribe({ pool_id: poolId, vgpus: 1 })).body;
  const terms = {
    team_id: tenant.teamId,
    subscription_id,
    name: 'web',
    image: 'python:3.13',
    env: { TOKEN: 'secret' },
  };
  const { pod_name: podName } = await succeed<{ pod_name: string }>('POST', '/pods', { ...access, body: terms });
  await untilStatus(platform, `/pods/${podName}`, 'running');
  const service = { pod_name: podName, service_name: 'web', port: 8080, protocol: 'HTTP', ssl_enabled: true };
  const { service_id } = await succeed<{ service_id: string }>('POST', '/pods/expose-service', {
    ...access,
    body: service,
  });
  const path = `/pods/expose-service/status?service_id=${service_id}`;
  await untilStatus(platform, path, 'active');
  const { external_port: externalPort } = await succeed<{ external_port: number }>('GET', path, access);
  return { podName, externalPort };
}

/** A simulated host of this model. */
async function makeHost(platform: Operated, region_id: string, gpu_model: string, terms: object = {}): Promise<string> {
  const specs = { gpu_model, gpu_count: 8, cpu_cores: 64, memory_gb: 512 };
  const place = { name: gpu_model, region_id, host: `${gpu_model}.example` };
  const body = { ...place, driver: 'simulated', credential: { password: 'operator' }, specs };
  const access = { url: platform.url, key: platform.adminKey };
  const { node_id } = await succeed<{ node_id: string }>('POST', '/baremetal/node', {
    ...access,
    body: { ...body, ...terms },
  });
  await untilStatus(platform, `/baremetal/node/${node_id}`, 'Available');
  return node_id;
}

/** An instance that is Active, on a host of its own. */
async function makeInstance(
  platform: Operated,
  region_id: string,
  gpu_model: string,
  terms: object = {},
): Promise<string> {
  await makeHost(platform, region_id, gpu_model, terms);
  const { team } = await createTeam('Tenant of a host', ['team_owner'], platform);
  const body = { team_id: team.id, region_id, name: 'training', specs: { gpu_model } };
  const access = { url: platform.url, key: platform.adminKey };
  const { instance_id } = await succeed<{ instance_id: string }>('POST', '/baremetal/request', { ...access, body });
  await untilStatus(platform, `/baremetal/${instance_id}`, 'Active');
  return instance_id;
}

async function makeReinstall(
  platform: Operated,
  regionId: string,
  hook: IdleHook,
  url: string,
): Promise<Secrets['reinstall']> {
  const { private: private_key } = ssh2.utils.generateKeyPairSync('ed25519');
  const terms = { tenant_sudo: true, credential: { private_key }, reinstall: { url } };
  const instanceId = await makeInstance(platform, regionId, 'A100-80GB', terms);
  await succeed('DELETE', `/baremetal/${instanceId}`, { url: platform.url, key: platform.adminKey });
  const token = await hook.token;
  return { nodeId: token.split('.')[0] ?? '', token };
}

async function beginSecondFactor({ url: platformUrl, adminKey }: Operated): Promise<string> {
  const email = 'admin@atoll.local';
  const { url } = await succeed<{ url: string }>('POST', '/user/login-link', {
    url: platformUrl,
    key: adminKey,
    body: { email },
  });
  await succeed('POST', '/user/link', { url: platformUrl, body: { token: url.split('#')[1], password } });
  const { access_token } = await succeed<{ access_token: string }>('POST', '/user/login', {
    url: platformUrl,
    body: { email, password },
  });
  await succeed('POST', '/user/second-factor/begin', { url: platformUrl, key: access_token });
  return access_token;
}

/** Resolves when what stands under the path has come to this status. */
export async function untilStatus({ url, adminKey }: Operated, path: string, wanted: string): Promise<void> {
  await until(
    () => succeed<{ status: string }>('GET', path, { url, key: adminKey }),
    ({ status }) => status === wanted,
    30_000,
  );
}

/** Of the certificate that a port on loopback shows. */
export async function fingerprintAt(port: number): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { fingerprint256 } = socket.getPeerCertificate();
  socket.destroy();
  return fingerprint256;
}
