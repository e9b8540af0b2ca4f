import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { generateKeyPair } from '@atoll/ssh';
import type { StepContext } from '@atoll/state-machine';
import { describeWhere, hostsLack } from '@atoll/testing';
import { aTenancy, codeOf, later, type HostUnderContract } from './host-driver-contract-fixture.js';
import type { Tenancy } from './host-driver.js';
import { startSshHostUnderContract } from './ssh-host-fixture.js';

type Host = HostUnderContract & { real: { inside(script: string): Promise<string> } };

const patient = (): StepContext => ({ signal: AbortSignal.timeout(60_000) });

describeWhere(hostsLack(), 'a tenant without root, who does not want to leave,', () => {
  let under: Host;
  beforeEach(async () => {
    under = await startSshHostUnderContract();
  });
  afterEach(() => under.stop());

  const tenant = async (more: Partial<Tenancy> = {}): Promise<Tenancy> => {
    const tenancy = aTenancy(more);
    await under.driver.createUser(under.host, tenancy, patient());
    await under.driver.placeKeys(under.host, tenancy, patient());
    await under.driver.setPassword(under.host, tenancy, patient());
    return tenancy;
  };
  const as = ({ username }: Tenancy, script: string) => under.real.inside(`su - ${username} -c '${script}'`);
  const isOpenTo = ({ username, password }: Tenancy) => under.opens(username, { password });
  const changeKeys = (tenancy: Tenancy) => codeOf(under.driver.changeKeys(under.host, tenancy, patient()));
  const revoke = (tenancy: Tenancy) => codeOf(under.driver.revoke(under.host, later(tenancy), patient()));
  const isGone = async (tenancy: Tenancy) => {
    expect(await isOpenTo(tenancy)).toBe(false);
    expect(await codeOf(under.driver.inspect(under.host, patient()))).toBe('none');
  };

  it.each([
    ['a pipe', 'rm .ssh/authorized_keys; mkfifo .ssh/authorized_keys'],
    ['an endless file', 'ln -sf /dev/zero .ssh/authorized_keys'],
    ['a folder', 'rm .ssh/authorized_keys; mkdir -p .ssh/authorized_keys/in'],
    ['a pipe where the new keys are put first', 'mkfifo .ssh/authorized_keys.atoll'],
  ])('gets the keys of the team although authorized_keys is %s', async (_what, script) => {
    const key = generateKeyPair();
    const tenancy = await tenant({ keys: [key.publicKey] });
    await as(tenancy, script);
    expect(await changeKeys(tenancy)).toBe('none');
    expect(await under.opens(tenancy.username, key)).toBe(true);
    expect(await revoke(tenancy)).toBe('none');
    await isGone(tenancy);
  });

  it('keeps lines of its own in authorized_keys, through a link too', async () => {
    const [own, key] = [generateKeyPair(), generateKeyPair()];
    const tenancy = await tenant({ keys: [key.publicKey] });
    await as(
      tenancy,
      `echo "${own.publicKey}" >> .ssh/authorized_keys; mv .ssh/authorized_keys k; ln -s ../k .ssh/authorized_keys`,
    );
    expect(await changeKeys({ ...tenancy, keys: [] })).toBe('none');
    expect([await under.opens(tenancy.username, own), await under.opens(tenancy.username, key)]).toEqual([true, false]);
    expect(await revoke(tenancy)).toBe('none');
  });

  it('stops the process that writes its keys, which ends in time and holds up nothing', async () => {
    const tenancy = await tenant();
    // Much to remove gives the time to see it, and what looks for it starts no process, however busy the machine is.
    // Once it has stopped one it looks for others ten times a second.
    await as(
      tenancy,
      `mkdir .ssh/authorized_keys.atoll; (cd .ssh/authorized_keys.atoll && seq 20000 | xargs touch)
mkfifo pause
cat > stop <<\\EOF
exec 3<>pause
while :; do
  for process in /proc/[0-9]*; do
    read -r name < $process/comm && [ "$name" = sh ] && kill -STOP \${process#/proc/} && pause=0.1
  done
  [ -z "$pause" ] || read -r -t $pause -u 3
done
EOF
(setsid bash ./stop >/dev/null 2>&1 &)`,
    );
    expect(await changeKeys(tenancy)).toBe('keys_failed');
    expect(await under.real.inside('flock -n /var/lib/atoll/lock true && ls /var/lib/atoll')).toBe(
      'fence\ninstance\nlock\nreserve',
    );
    expect(await revoke(tenancy)).toBe('none');
    await isGone(tenancy);
  });

  it('is shut out although another script of the platform hangs, or something newer was told to the host', async () => {
    const tenancy = await tenant();
    await as(tenancy, '(setsid sleep 1000 >/dev/null 2>&1 &)');
    const release = await under.real.inside(
      `setsid flock /var/lib/atoll/lock sleep 1000 >/dev/null 2>&1 & echo $!
while flock -n /var/lib/atoll/lock true; do sleep 0.01; done`,
    );
    expect(await revoke(tenancy)).toBe('host_locked');
    expect(await isOpenTo(tenancy)).toBe(false);
    expect(
      await under.real.inside(`pgrep -u ${tenancy.username} || true; kill -KILL -- -${release}; echo ${release}`),
    ).toBe(release);
    expect(await codeOf(under.driver.revoke(under.host, { ...tenancy, fence: '0' }, patient()))).toBe('superseded');
    expect(await revoke(tenancy)).toBe('none');
    await isGone(tenancy);
  });

  it('has its comment changed, and is known all the same', async () => {
    const tenancy = await tenant();
    await under.real.inside(`usermod --comment 'somebody else' ${tenancy.username}`);
    expect(await codeOf(under.driver.inspect(under.host, patient()))).toBe('leftovers');
    expect(await revoke(tenancy)).toBe('none');
    await isGone(tenancy);
  });

  it('leaves files wherever everybody may', async () => {
    const tenancy = await tenant();
    const folders = '/tmp /var/tmp /dev/shm /run/lock /var/crash /var/mail';
    await under.real.inside(`mkdir -p ${folders}; chmod 1777 ${folders}`);
    await as(tenancy, `for folder in ${folders}; do mkdir $folder/left && touch $folder/left/file; done`);
    expect(await revoke(tenancy)).toBe('none');
    expect(await under.real.inside(`ls -d ${folders.replaceAll(/(\S+)/g, '$1/left')} 2>/dev/null || true`)).toBe('');
  });

  it('is started no more by what starts processes of users: neither by cron nor by systemd', async () => {
    const tenancy = await tenant();
    const folders = ['/var/lib/systemd/linger', '/var/spool/cron', '/var/spool/cron/crontabs'];
    const files = folders.map((folder) => `${folder}/${tenancy.username}`).join(' ');
    await under.real.inside(`mkdir -p ${folders.join(' ')} && touch ${files}`);
    expect(await revoke(tenancy)).toBe('none');
    expect(await under.real.inside(`ls -d ${files} 2>/dev/null || true`)).toBe('');
  });

  it('has no users of its own to run processes under', async () => {
    await under.real.inside('touch /etc/subuid /etc/subgid');
    const tenancy = await tenant();
    expect(await under.real.inside(`grep -h ${tenancy.username} /etc/subuid /etc/subgid || true`)).toBe('');
    expect(await revoke(tenancy)).toBe('none');
  });

  it.each([
    ['the disk', 'head -c 400M /dev/zero >> /tmp/full', 'archive'],
    ['the disk with its home folder', 'head -c 400M /dev/zero >> full', 'remove'],
  ] as const)('fills %s, and is evicted', async (_what, script, home) => {
    const tenancy = await tenant({ home });
    await as(tenancy, `(setsid sh -c "while :; do ${script}; sleep 0.01; done" >/dev/null 2>&1 &)`);
    await as(tenancy, 'until ! head -c 9000 /dev/zero > probe; do sleep 0.1; done 2>/dev/null');
    let code = await revoke(tenancy);
    expect(await isOpenTo(tenancy)).toBe(false);
    // Large home folders are removed by the by.
    for (let tries = 0; code === 'host_disk' && tries < 20; tries++) code = await revoke(tenancy);
    expect(code).toBe('none');
    await isGone(tenancy);
  });
});
