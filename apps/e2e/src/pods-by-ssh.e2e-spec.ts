import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeWhere } from '@atoll/testing';
import ssh2 from 'ssh2';
import { adminKey, call, succeed, until } from './client.js';
import { createNode, createPool, createTenant } from './gpu-inventory.js';

const lacking = spawnSync('ssh', ['-V']).error ? 'OpenSSH’s client was not found' : undefined;
const { private: privateKey, public: publicKey } = ssh2.utils.generateKeyPairSync('ed25519');

interface PodView {
  pod_name: string;
  status: string;
}

describeWhere(lacking, 'a simulated pod, by OpenSSH’s client', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-ssh-'));
  let tenant: Awaited<ReturnType<typeof createTenant>>;
  let pod: PodView;
  let keyId: string;
  beforeAll(async () => {
    writeFileSync(join(folder, 'key'), privateKey, { mode: 0o600 });
    tenant = await createTenant('Shell users');
    const node = await createNode({ gpus: [{ board: 'A100-80GB', count: 1 }] });
    const { poolId } = await createPool(node, { sharing_mode: 'Spatial', mechanism: 'mps', replicas: 4 });
    const { subscription_id } = (await tenant.subscribe({ pool_id: poolId, vgpus: 2 })).body;
    const body = { team_id: tenant.teamId, subscription_id, name: 'shell', image: 'python:3.13' };
    pod = (await call<PodView>('POST', '/pods', { key: tenant.key, body })).body;
    await until(
      () => call<PodView>('GET', `/pods/${pod.pod_name}`, { key: tenant.key }),
      ({ body: found }) => found.status === 'running',
    );
    const added = await succeed<{ ssh_key_id: string }>('POST', '/user/ssh-key', {
      key: adminKey,
      body: { public_key: publicKey, name: 'e2e' },
    });
    keyId = added.ssh_key_id;
  });
  afterAll(async () => {
    if (keyId) await call('DELETE', `/user/ssh-key/${keyId}`, { key: adminKey });
    rmSync(folder, { recursive: true });
  });

  it('is entered by the command that connection-info shows, and no more once the key is gone', async () => {
    interface Connections {
      data: { pods: { ssh: { command: string } | null }[] }[];
    }
    const { data } = await until(
      async () => {
        await succeed('POST', `/gpuaas/refresh-connections?team_id=${tenant.teamId}`, { key: tenant.key });
        const path = `/gpuaas/connection-info?team_id=${tenant.teamId}&search=${pod.pod_name}`;
        return succeed<Connections>('GET', path, { key: tenant.key });
      },
      (found) => found.data[0]?.pods[0]?.ssh != null,
    );
    const [, ...words] = data[0]?.pods[0]?.ssh?.command.split(' ') ?? [];
    const settings = [
      'BatchMode=yes',
      'StrictHostKeyChecking=no',
      `UserKnownHostsFile=${folder}/known_hosts`,
      'IdentityAgent=none',
      'LogLevel=ERROR',
    ];
    const options = ['-F', 'none', '-i', join(folder, 'key'), ...settings.flatMap((setting) => ['-o', setting])];
    const ssh = (line: string) =>
      new Promise<{ code: number; out: string }>((resolve) => {
        execFile('ssh', [...options, ...words, line], (error, out) => resolve({ code: Number(error?.code ?? 0), out }));
      });
    /** 255 is that of ssh itself, where the door of a busy machine was too late to let it in. */
    const entered = (line: string) =>
      until(
        () => ssh(line),
        ({ code }) => code !== 255,
      );
    expect(await entered('hostname; exit 4')).toEqual({ code: 4, out: `${pod.pod_name}\n` });
    expect((await entered('nvidia-smi')).out).toContain('A100-80GB');
    await call('DELETE', `/user/ssh-key/${keyId}`, { key: adminKey });
    expect((await ssh('hostname')).code).toBe(255);
  });
});
