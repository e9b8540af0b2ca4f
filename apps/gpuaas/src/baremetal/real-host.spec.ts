import { afterAll, afterEach, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { baremetalNodes, type BaremetalNode } from '@atoll/contracts/gpuaas';
import { userKeysChanged } from '@atoll/contracts/pods';
import { membershipChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { generateKeyPair } from '@atoll/ssh';
import { describeWhere, hostsLack, startSshHost, type SshHost } from '@atoll/testing';
import type { ToldTeam } from '../gpuaas-fixture.js';
import { BaremetalFixture } from './baremetal-fixture.js';
import { tools } from './hosts/host-scripts.js';
import { SshHosts } from './hosts/ssh-hosts.js';
import { opens } from './hosts/ssh-host-fixture.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start({ hostStepSeconds: 20 });
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const declared = { gpu_model: 'H100-80GB', gpu_count: 2, cpu_cores: 4_000, memory_gb: 900_000 };
const nvidiaSmi = `printf '#!/bin/sh\\necho "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)"\\n' > /usr/bin/nvidia-smi; chmod +x /usr/bin/nvidia-smi`;

/** Registers a real host, in the state that its first check leaves it in. */
async function registered(host: SshHost, more: object = {}): Promise<BaremetalNode> {
  const { node_id } = await fixture.register({
    host: '127.0.0.1',
    port: host.port,
    driver: 'ssh',
    credential: { password: host.password },
    specs: { ...declared, gpu_model: `m-${newId().slice(-8)}` },
    ...more,
  });
  await fixture.settle();
  return fixture.node(node_id);
}

async function accepted(host: SshHost, more: object = {}): Promise<BaremetalNode> {
  const node = await registered(host, more);
  await fixture.gpuaas.call(baremetalNodes.accept, { node_id: node.node_id });
  return fixture.node(node.node_id);
}

const wanted = ({ specs }: BaremetalNode) => ({ specs: { gpu_model: specs.gpu_model ?? '' } });
const provision = (node: BaremetalNode) => fixture.settled(team, wanted(node));

describeWhere(hostsLack(), 'a real host', () => {
  let host: SshHost;
  beforeEach(async () => {
    host = await startSshHost();
  });
  afterEach(() => host.stop());

  it('is offered once the operator has accepted what was found; a later check that finds the same passes', async () => {
    await host.inside(nvidiaSmi);
    const node = await registered(host, { specs: declared });
    expect(node).toMatchObject({
      status: 'Check failed',
      host_key: host.hostKey,
      found: { gpu_count: 1, gpu_model: 'NVIDIA H100 80GB HBM3' },
    });
    expect(node.differences.map(({ field }) => field)).toEqual(['gpu_count', 'cpu_cores', 'memory_gb']);
    expect(node.reason).toContain('gpu_count is 1, declared 2');
    const by = (name: 'accept' | 'check') => fixture.gpuaas.call(baremetalNodes[name], { node_id: node.node_id });
    expect((await by('accept')).status).toBe('Available');
    expect((await by('check')).status).toBe('Checking');
    await fixture.settle();
    expect((await fixture.node(node.node_id)).status).toBe('Available');
  });

  it('that another platform has used before, or a node that was deleted, is as good as new', async () => {
    const first = await accepted(host);
    const instance = await provision(first);
    await fixture.end(team, instance);
    await fixture.settle();
    await fixture.gpuaas.call(baremetalNodes.delete, { node_id: first.node_id });
    const second = await accepted(host);
    expect(second.node_id).not.toBe(first.node_id);
    expect(await provision(second)).toMatchObject({ status: 'Active' });
  });

  it('opens to its tenant alone, shows no secret in its processes, and is shut when it is released', async () => {
    const node = await accepted(host);
    const watching = host.inside('until [ -e /run/watched ]; do ps -e -o args=; touch /run/watching; sleep 0.01; done');
    await host.inside('until [ -e /run/watching ]; do sleep 0.01; done');
    const instance = await provision(node);
    expect(instance).toMatchObject({ status: 'Active', error: null });
    const { username, ssh_password: password } = await fixture.credentials(team, instance);
    const [proof] = await fixture.gpuaas.query<{ proof_key: string }>(
      'SELECT proof_key FROM baremetal_instance WHERE instance_id = $1',
      [instance.instance_id],
    );
    await host.inside('touch /run/watched');
    const processes = await watching;
    expect(processes).toContain('sshd');
    expect(processes).not.toContain(password);
    expect(processes).not.toContain('ssh-ed25519');
    expect(proof?.proof_key).not.toContain(password);
    expect(await opens(host, username, { password })).toBe(true);
    expect(await opens(host, username, { password: 'another' })).toBe(false);
    await host.inside(
      `su - ${username} -c 'echo mine > file; nohup sleep 1000 >/dev/null 2>&1 & echo "* * * * * true" > /tmp/left'`,
    );
    await fixture.end(team, instance);
    await fixture.settle();
    expect(await fixture.instance(team, instance)).toMatchObject({ status: 'Released' });
    expect(await opens(host, username, { password })).toBe(false);
    expect(
      await host.inside(`getent passwd ${username} || ls /tmp; ps -e -o args= | grep -c '[s]leep 1000' || true`),
    ).toBe('0');
    expect(
      await host.inside(
        `cat /home/.atoll-archive/${username}-${instance.instance_id}/file; stat -c %a /home/.atoll-archive`,
      ),
    ).toBe('mine\n700');
    expect((await fixture.node(node.node_id)).status).toBe('Available');
  });

  it('is closed to its team until it is Active: nobody of it prevents that, and uses the host unbilled', async () => {
    const node = await accepted(host);
    const [theirs, user_id, { publicKey, privateKey }] = [await fixture.team(), newId(), generateKeyPair()];
    await fixture.gpuaas.tell(membershipChanged, { team_id: theirs.team_id, user_id, role: 'member', revision: 1 });
    await fixture.gpuaas.tell(userKeysChanged, { user_id, keys: [publicKey], revision: 1 });
    const instance = await fixture.request(theirs, wanted(node));
    for (const state of ['setting_password', 'verifying'] as const) {
      await fixture.reach(instance, state);
      const username = await host.inside('getent passwd | grep -o "^atl-[^:]*"');
      expect(await opens(host, username, { privateKey })).toBe(false);
    }
    await fixture.settle();
    const { username } = await fixture.credentials(theirs, instance);
    expect(await opens(host, username, { privateKey })).toBe(true);
    expect((await fixture.factsOf(instance)).map(({ quantity }) => quantity)).toEqual(['1']);
    await fixture.end(theirs, instance);
    await fixture.settle();
  });

  it('whose password step fails ends the instance as Failed with the reason, and is Available and shut again', async () => {
    const node = await accepted(host);
    await host.inside(
      `printf '#!/bin/sh\\ncat >/dev/null; echo "PAM: no entropy" >&2; exit 3\\n' > /usr/local/sbin/chpasswd; chmod +x /usr/local/sbin/chpasswd`,
    );
    const instance = await provision(node);
    expect(instance).toMatchObject({
      status: 'Failed',
      error: { code: 'chpasswd_failed', step: 'set_password', message: 'chpasswd ended with code 3: PAM: no entropy' },
    });
    expect((await fixture.node(node.node_id)).status).toBe('Available');
    expect(await host.inside(`getent passwd | grep -c atl- || true; ls -A /var/lib/atoll`)).toBe(
      '0\nfence\nlock\nreserve',
    );
    await host.inside('rm /usr/local/sbin/chpasswd');
    expect((await provision(node)).status).toBe('Active');
  });

  it('on which a worker died after it had set the password keeps none that the database does not know', async () => {
    const node = await accepted(host);
    const setPassword: SshHosts['setPassword'] = Reflect.get(SshHosts.prototype, 'setPassword');
    let secret = { username: '', password: '' };
    const spy = jest.spyOn(SshHosts.prototype, 'setPassword').mockImplementationOnce(async function (
      this: SshHosts,
      to,
      tenancy,
      context,
    ) {
      secret = tenancy;
      await setPassword.call(this, to, tenancy, context);
      await fixture.gpuaas.query(
        'UPDATE baremetal_instance SET claim_token = gen_random_uuid(), claimed_until = clock_timestamp() WHERE claim_token IS NOT NULL',
      );
    });
    const instance = await fixture.request(team, wanted(node));
    while (!spy.mock.calls.length) await fixture.workOnce();
    spy.mockRestore();
    expect(await opens(host, secret.username, { password: secret.password })).toBe(true);
    await fixture.end(team, instance);
    await fixture.settle();
    expect((await fixture.instance(team, instance)).status).toBe('Cancelled');
    expect(await opens(host, secret.username, { password: secret.password })).toBe(false);
  });

  it('gives sudo where the operator wants so, to log-in by the platform’s key', async () => {
    const { publicKey, privateKey } = generateKeyPair();
    await host.inside(
      `mkdir -p -m 700 ~atoll/.ssh && echo '${publicKey}' > ~atoll/.ssh/authorized_keys && chown -R atoll ~atoll/.ssh`,
    );
    const node = await accepted(host, {
      tenant_sudo: true,
      ssh_user: 'atoll',
      credential: { private_key: privateKey },
    });
    const instance = await provision(node);
    const { username } = await fixture.credentials(team, instance);
    expect(await host.inside(`su - ${username} -c 'sudo -n id -u'`)).toBe('0');
    await fixture.end(team, instance);
    await fixture.settle();
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Clean failed', maintenance: true });
    expect(await host.inside(`ls /etc/sudoers.d`)).not.toContain(username);
  });

  it('that lacks tools is not offered, and says which', async () => {
    const { node_id } = await registered(host);
    const half = tools.length / 2;
    for (const lacking of [tools, tools.slice(0, half), tools.slice(half), tools.slice(-1)]) {
      const paths = (await host.inside(`command -v ${lacking.join(' ')}`)).trim().split('\n');
      await host.inside(paths.map((path) => `mv ${path} ${path}.away`).join(' && '));
      await fixture.gpuaas.call(baremetalNodes.check, { node_id });
      await fixture.settle();
      const reason = `The host lacks: ${lacking.join(' ')}.`;
      expect(await fixture.node(node_id)).toMatchObject({ status: 'Check failed', reason });
      await host.inside(paths.map((path) => `mv ${path}.away ${path}`).join(' && '));
    }
  });

  it('that has bash for sh, as RHEL-like hosts have, is used and given back like any other', async () => {
    await host.inside('ln -sf bash /bin/sh');
    const node = await accepted(host, { ssh_user: 'atoll' });
    const instance = await provision(node);
    expect(instance).toMatchObject({ status: 'Active', error: null });
    const { username, ssh_password: password } = await fixture.credentials(team, instance);
    expect(await opens(host, username, { password })).toBe(true);
    await fixture.end(team, instance);
    await fixture.settle();
    expect(await opens(host, username, { password })).toBe(false);
    expect((await fixture.node(node.node_id)).status).toBe('Available');
  });

  it('whose sudo wants a terminal, or a password, is not offered, and says so', async () => {
    for (const [setting, reason] of [
      ['Defaults requiretty', /no password-less sudo: .*tty/],
      ['Defaults:atoll authenticate', /no password-less sudo: .*password/],
    ] as const) {
      await host.inside(
        `echo '${setting}' > /etc/sudoers.d/zz; [ '${setting}' = 'Defaults requiretty' ] || echo 'atoll ALL=(ALL) ALL' > /etc/sudoers.d/atoll`,
      );
      const node = await registered(host, { ssh_user: 'atoll' });
      expect([node.status, node.reason]).toEqual(['Check failed', expect.stringMatching(reason)]);
      await fixture.gpuaas.call(baremetalNodes.delete, { node_id: node.node_id });
    }
  });

  it('that is full fails by that, and is cleaned in the background once it has room', async () => {
    const node = await accepted(host);
    await host.inside('head -c 400M /dev/zero > /full 2>/dev/null || true');
    expect(await provision(node)).toMatchObject({
      status: 'Failed',
      error: { code: 'host_disk', step: 'create_user' },
    });
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Clean failed', maintenance: true });
    await host.inside('rm /full');
    await fixture.pass(600);
    await fixture.settle();
    expect(await fixture.node(node.node_id)).toMatchObject({ status: 'Available', maintenance: false });
  });
});
