import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { newId } from '@atoll/database';
import { generateKeyPair, SshSession, type SshCredential } from '@atoll/ssh';
import { describeWhere, hostsLack } from '@atoll/testing';
import type { Tenancy } from './host-driver.js';
import { startSshHostUnderContract } from './ssh-host-fixture.js';

describeWhere(hostsLack(), 'what a tenant leaves on a host', () => {
  let under: Awaited<ReturnType<typeof startSshHostUnderContract>>;
  let fence = 0;
  beforeAll(async () => {
    under = await startSshHostUnderContract();
    await under.real.inside('mkdir -p -m 1777 /data');
  });
  afterAll(() => under.stop());
  const patient = () => ({ signal: AbortSignal.timeout(60_000) });

  async function provisioned(): Promise<Tenancy> {
    const { driver, host } = under;
    const instanceId = newId();
    const username = `atl-${instanceId.replaceAll('-', '').slice(-10)}`;
    const tenancy = {
      instanceId,
      username,
      password: 'K7mQ2vXw9RtYb4NcHs8ZpLfA',
      proofKey: generateKeyPair(),
      keys: [],
    };
    const last = { ...tenancy, hasSudo: false, home: 'remove' as const, fence: String((fence += 1)) };
    await driver.createUser(host, last, patient());
    await driver.createUser(host, last, patient());
    await driver.setPassword(host, last, patient());
    return last;
  }

  async function release(tenancy: Tenancy): Promise<void> {
    await under.driver.revoke(under.host, { ...tenancy, fence: String((fence += 1)) }, patient());
  }

  /** Output of a command, within the namespaces of the host's sshd. */
  async function run(user: string, credential: SshCredential, command: string): Promise<string> {
    const { signal } = patient();
    const target = { host: '127.0.0.1', port: under.real.port, hostKey: under.real.hostKey, user, credential };
    const session = await SshSession.open(target, { allowLoopback: true }, signal);
    try {
      return (await session.run({ command }, signal)).stdout.trim();
    } finally {
      session.close();
    }
  }

  it('belongs to nobody, also not to the next tenant: neither a user nor a group gets the number of an earlier one', async () => {
    const numbers: string[] = [];
    for (let count = 0; count < 2; count += 1) {
      const { username, password, ...tenancy } = await provisioned();
      await run(username, { password }, 'touch /data/$(id -un)');
      numbers.push(await run(username, { password }, 'id -u; id -g'));
      await release({ username, password, ...tenancy });
    }
    const [first, second] = numbers.map((lines) => lines.split('\n'));
    expect(first).toEqual(['2001000001', '2001000001']);
    expect(second).toEqual(['2001000003', '2001000003']);
    expect(await under.real.inside('stat -c "%U:%G" /data/*')).toBe('UNKNOWN:UNKNOWN\nUNKNOWN:UNKNOWN');
    expect(await under.real.inside('getent passwd; getent group; cat /etc/subuid')).not.toContain('atl-');
  });

  it('is no hindrance once the operator has removed its user, as after a restore that forgot it', async () => {
    const { username } = await provisioned();
    await expect(provisioned()).rejects.toMatchObject({ code: 'host_in_use' });
    await under.real.inside(`userdel -r ${username}`);
    await under.driver.inspect(under.host, patient());
    await release(await provisioned());
  });

  it('is neither shared memory, nor a semaphore, nor a message queue; those of others stay', async () => {
    const root = { password: under.real.password };
    const made = 'ipcmk -M 100; ipcmk -S 1; ipcmk -Q; touch /dev/mqueue/$(id -un) /dev/shm/$(id -un)';
    const left = (user: string) =>
      run(
        'root',
        root,
        `cat /proc/sysvipc/* | tail -qn +1 | grep -cE ' ${user} ' ; ls /dev/mqueue /dev/shm | grep -c atl-`,
      );
    await run('root', root, 'ipcmk -M 100');
    const tenancy = await provisioned();
    const number = String(2_001_000_000 + fence);
    await run(tenancy.username, { password: tenancy.password }, made);
    expect(Number((await left(number)).split('\n')[0])).toBe(3);
    await release(tenancy);
    expect(await left(number)).toBe('0\n0');
    expect(await run('root', root, 'ipcs -m | grep -c root')).toBe('1');
  });
});
