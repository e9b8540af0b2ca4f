import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeWhere, hostsLack, startSshHost, type SshHost } from '@atoll/testing';
import { call, createTeam, succeed, until } from './client.js';
import { startPlatform, type RunningPlatform, type Topology } from './running-platform.js';

const topology = (process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology;
const lacking = hostsLack() ?? (spawnSync('ssh', ['-V']).error ? 'OpenSSH’s client was not found' : undefined);

interface NodeView {
  node_id: string;
  status: string;
  reason: string | null;
  host_key: string | null;
  differences: { field: string }[];
  instance_id: string | null;
  maintenance: boolean;
}
interface InstanceView {
  instance_id: string;
  status: string;
  error: { code: string; step: string; message: string } | null;
  attempts: { action: string; step: string; outcome: string; started_at: string; ended_at: string | null }[];
}
interface Credentials {
  host: string;
  port: number;
  username: string;
  ssh_password: string;
}

describeWhere(lacking, 'bare metal on a real sshd, by OpenSSH’s client', () => {
  let folder: string;
  let host: SshHost;
  let platform: RunningPlatform;
  let tenant: Awaited<ReturnType<typeof createTeam>>;
  let nodeId: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'atoll-metal-'));
    host = await startSshHost();
    platform = await startPlatform(topology, { ATOLL_ALLOW_LOOPBACK_HOSTS: 'true' });
    tenant = await createTeam('Bare metal', ['team_owner', 'member'], platform);
  });
  afterAll(async () => {
    await platform?.stop();
    await host?.stop();
    rmSync(folder, { recursive: true });
  });

  const ask = <Body>(method: string, path: string, body?: object, key = platform.adminKey): Promise<Body> =>
    succeed<Body>(method, path, { url: platform.url, key, body });
  const member = () => tenant.keys.member ?? '';
  const node = () => ask<NodeView>('GET', `/baremetal/node/${nodeId}`);
  const nodeIs = (wanted: string) => until(node, ({ status }) => status === wanted, 60_000);
  const instanceIs = (id: string, ...wanted: string[]) =>
    until(
      () => ask<InstanceView>('GET', `/baremetal/${id}`, undefined, member()),
      ({ status }) => wanted.includes(status),
      90_000,
    );
  const request = () =>
    ask<InstanceView>(
      'POST',
      '/baremetal/request',
      { team_id: tenant.team.id, name: 'training', specs: { gpu_model: 'l4-24gb' } },
      member(),
    );

  /** What the command prints, or what ssh says where it does not get in. The password is typed, not given. */
  function ssh({ host: name, port, username, ssh_password }: Credentials, command: string): Promise<string> {
    const helper = join(folder, 'askpass');
    writeFileSync(helper, '#!/bin/sh\nprintf "%s\\n" "$ATOLL_TEST_PASSWORD"\n', { mode: 0o700 });
    const options = [
      'StrictHostKeyChecking=no',
      `UserKnownHostsFile=${join(folder, 'known')}`,
      'NumberOfPasswordPrompts=1',
      'LogLevel=ERROR',
    ];
    const args = ['-p', String(port), ...options.flatMap((option) => ['-o', option]), `${username}@${name}`, command];
    const env = {
      ...process.env,
      SSH_ASKPASS: helper,
      SSH_ASKPASS_REQUIRE: 'force',
      ATOLL_TEST_PASSWORD: ssh_password,
    };
    return new Promise((resolve) =>
      execFile('ssh', args, { env }, (error, stdout, stderr) => resolve(error ? stderr : stdout)),
    );
  }

  it('is registered, accepted, requested, entered by password, and shut when it is released', async () => {
    const { region_id } = await ask<{ region_id: string }>('POST', '/region', { region_name: 'by-ssh' });
    const specs = { gpu_model: 'L4-24GB', gpu_count: 2, cpu_cores: 4_000, memory_gb: 25 };
    const body = { name: 'metal-01', region_id, host: '127.0.0.1', port: host.port, ssh_user: 'atoll', specs };
    const credential = { password: host.password };
    nodeId = (await ask<NodeView>('POST', '/baremetal/node', { ...body, credential })).node_id;
    const checked = await nodeIs('Check failed');
    expect([checked.host_key, checked.differences.map(({ field }) => field)]).toEqual([
      host.hostKey,
      expect.arrayContaining(['cpu_cores']),
    ]);
    expect(JSON.stringify(checked)).not.toContain(host.password);
    await ask('POST', `/baremetal/node/${nodeId}/accept`);
    const { instance_id: id } = await request();
    const active = await instanceIs(id, 'Active', 'Failed');
    // A busy machine may interrupt a step, which is then tried again.
    const ended = active.attempts.filter(({ outcome }) => outcome !== 'interrupted');
    expect([...new Set(ended.map(({ action, step, outcome }) => `${action} ${step} ${outcome}`))]).toEqual(
      ['reach', 'create_user', 'place_keys', 'set_password', 'verify'].map((step) => `provision ${step} succeeded`),
    );
    expect(active.attempts.every(({ started_at, ended_at }) => ended_at !== null && ended_at >= started_at)).toBe(true);
    const credentials = await ask<Credentials>('GET', `/baremetal/${id}/credentials`, undefined, member());
    expect(await ssh(credentials, 'id -un; hostname')).toBe(`${credentials.username}\ngpu-host\n`);
    expect(await ssh({ ...credentials, ssh_password: 'another' }, 'id')).toContain('Permission denied');
    await ask('DELETE', `/baremetal/${id}`, undefined, member());
    await instanceIs(id, 'Released');
    expect(await nodeIs('Available')).toMatchObject({ instance_id: null });
    expect(await ssh(credentials, 'id')).toContain('Permission denied');
    expect((await call('GET', `/baremetal/${id}/credentials`, { url: platform.url, key: member() })).status).toBe(409);
    expect(platform.output()).not.toContain(credentials.ssh_password);
  });

  it('whose password step fails ends the request with its reason, and is free again by itself, with nothing left on it', async () => {
    const fake = '/usr/local/sbin/chpasswd';
    await host.inside(
      `printf '#!/bin/sh\\ncat >/dev/null; echo "PAM: no entropy" >&2; exit 1\\n' > ${fake}; chmod +x ${fake}`,
    );
    const { instance_id: id } = await request();
    const failed = await instanceIs(id, 'Failed');
    expect(failed.error).toMatchObject({
      code: 'chpasswd_failed',
      step: 'set_password',
      message: 'chpasswd ended with code 1: PAM: no entropy',
    });
    expect(failed.attempts.at(-1)).toMatchObject({ action: 'rollback', step: 'revoke', outcome: 'succeeded' });
    expect(await nodeIs('Available')).toMatchObject({ instance_id: null, maintenance: false });
    expect(await host.inside('getent passwd | grep -c atl- || true')).toBe('0');
    await host.inside(`rm ${fake}`);
  });
});
