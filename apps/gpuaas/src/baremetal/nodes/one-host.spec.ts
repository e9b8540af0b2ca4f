import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { baremetalNodes, type BaremetalNode } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { describeWhere, hostsLack, startSshHost, type SshHost } from '@atoll/testing';
import type { ToldTeam } from '../../gpuaas-fixture.js';
import { BaremetalFixture } from '../baremetal-fixture.js';
import { opens } from '../hosts/ssh-host-fixture.js';

let fixture: BaremetalFixture;
let team: ToldTeam;
beforeAll(async () => {
  fixture = await BaremetalFixture.start({ hostStepSeconds: 20 });
  team = await fixture.team();
});
afterAll(() => fixture.stop());

const by = (name: 'accept' | 'check', { node_id }: BaremetalNode) =>
  fixture.gpuaas.call(baremetalNodes[name], { node_id });
const provision = ({ specs }: BaremetalNode) => fixture.settled(team, { specs: { gpu_model: specs.gpu_model ?? '' } });

async function registered(port: number, host = '127.0.0.1', password = ''): Promise<BaremetalNode> {
  const specs = { gpu_model: `m-${newId().slice(-8)}`, gpu_count: 2, cpu_cores: 4_000, memory_gb: 900_000 };
  const { node_id } = await fixture.register({ host, port, driver: 'ssh', credential: { password }, specs });
  await fixture.settle();
  return fixture.node(node_id);
}

describeWhere(hostsLack(), 'a host', () => {
  let host: SshHost;
  beforeEach(async () => {
    host = await startSshHost({ before: 'echo 0123456789abcdef0123456789abcdef > /etc/machine-id' });
  });
  afterEach(() => host.stop());

  const accepted = async (): Promise<BaremetalNode> => {
    const node = await registered(host.port, '127.0.0.1', host.password);
    await by('accept', node);
    return fixture.node(node.node_id);
  };

  it('that was told something newer than the database knows is released, and used again', async () => {
    const node = await accepted();
    const instance = await provision(node);
    const { username, ssh_password: password } = await fixture.credentials(team, instance);
    await host.inside('echo 100 > /var/lib/atoll/fence');
    await fixture.end(team, instance);
    await fixture.settle();
    expect((await fixture.instance(team, instance)).status).toBe('Released');
    // At once, although the rest is left to cleaning.
    expect(await opens(host, username, { password })).toBe(false);
    await fixture.pass(600);
    await fixture.settle();
    expect(await fixture.node(node.node_id)).toMatchObject({
      status: 'Available',
      maintenance: false,
      instance_id: null,
    });
    expect(await host.inside(`getent passwd ${username} || cat /var/lib/atoll/fence`)).toBe('101');
    expect(await provision(node)).toMatchObject({ status: 'Active' });
  });

  it('is one node, by whatever names it is registered', async () => {
    const first = await accepted();
    const second = await registered(host.port, 'localhost', host.password);
    expect(second).toMatchObject({
      status: 'Check failed',
      reason: `This host is registered as ${first.name}: delete one of the two.`,
    });
    await by('check', first);
    await fixture.settle();
    expect((await fixture.node(first.node_id)).status).toBe('Available');
    await fixture.gpuaas.call(baremetalNodes.delete, { node_id: first.node_id });
    await by('check', second);
    await fixture.settle();
    expect((await fixture.node(second.node_id)).reason).toContain('differs from its specs');
  });

  it('that was cloned with its host key is one of its own, unless it cannot say so', async () => {
    const first = await accepted();
    await host.inside('echo fedcba9876543210fedcba9876543210 > /etc/machine-id');
    const clone = await registered(host.port, 'localhost', host.password);
    expect(clone.reason).toContain('differs from its specs');
    await host.inside('rm /etc/machine-id');
    await by('check', clone);
    await fixture.settle();
    expect((await fixture.node(clone.node_id)).reason).toContain(`registered as ${first.name}`);
  });

  it('is cleaned by a check where it could not be, and stays Clean failed until it is', async () => {
    const node = await accepted();
    const instance = await provision(node);
    await host.inside(`printf '#!/bin/sh\\nexit 1\\n' > /usr/local/sbin/userdel; chmod +x /usr/local/sbin/userdel`);
    await fixture.end(team, instance);
    await fixture.settle();
    expect((await by('check', node)).status).toBe('Clean failed');
    await fixture.settle();
    expect((await fixture.node(node.node_id)).status).toBe('Clean failed');
    await host.inside('rm /usr/local/sbin/userdel');
    await by('check', node);
    await fixture.settle();
    expect((await fixture.node(node.node_id)).status).toBe('Available');
  });
});
