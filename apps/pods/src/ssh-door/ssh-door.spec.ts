import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect, createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { PodRun } from '@atoll/cluster';
import { describeWhere, freePort, podmanLacks, timeoutFactor } from '@atoll/testing';
import type { SshDoor } from './ssh-door.js';
import { SshDoorFixture, until } from './ssh-door-fixture.js';

describeWhere(podmanLacks(), 'the SSH door, with OpenSSH’s client and real containers', () => {
  let fixture: SshDoorFixture;
  let door: SshDoor;
  let pod: PodRun;
  let key: string;
  let userId: string;
  beforeAll(async () => {
    fixture = await SshDoorFixture.start();
    door = await fixture.openDoor();
    pod = await fixture.pod(
      'socat TCP-LISTEN:8080,bind=127.0.0.1,fork,reuseaddr SYSTEM:"hostname; cat" & trap "exit 0" TERM; sleep infinity & wait',
    );
    key = await fixture.key();
    ({ userId } = await fixture.invite(pod, key));
  });
  afterAll(() => fixture?.stop());

  const ssh = (words: readonly string[] = [], input = '') => fixture.ssh(door, key, pod.podName, words, input);
  /** Whether `sleep` with this argument runs in a pod. */
  const sleeps = async (seconds: number, { podName } = pod, by = key) =>
    (await fixture.ssh(door, by, podName, [`grep -al '^sleep.${seconds}' /proc/[0-9]*/cmdline`])).stdout !== '';
  const sha = (data: Buffer | string) => createHash('sha256').update(data).digest('hex');

  it('runs a command in the pod: its output, its errors apart, its exit code', async () => {
    expect(await ssh(['hostname; echo "trouble" >&2; exit 7'])).toEqual({
      code: 7,
      stdout: `${pod.podName}\n`,
      stderr: 'trouble\n',
    });
  });

  it('passes input of any bytes to a command, to its end', async () => {
    const bytes = randomBytes(2_000_000);
    const child = spawn('ssh', [
      ...fixture.clientOptions(key),
      '-p',
      String(door.port),
      `${pod.podName}@127.0.0.1`,
      'sha256sum',
    ]);
    child.stdin.end(bytes);
    const [out] = (await once(child.stdout, 'data')) as [Buffer];
    expect(out.toString()).toContain(sha(bytes));
  });

  it('opens a shell that reads commands, with a terminal where one is asked for, of the client’s size', async () => {
    expect((await ssh([], 'echo "I am $((40 + 2))"; exit 3\n')).stdout).toContain('I am 42');
    const client = ['-tt', '-p', String(door.port), ...fixture.clientOptions(key), `${pod.podName}@127.0.0.1`];
    // `script` gives the client a terminal of its own, whose size it changes. It may lose what is on its way when the
    // client ends, and tells the end of its own input by a byte, which the pod's terminal may echo as `^@`.
    const seen = join(fixture.folder, 'terminal');
    const inner = `stty rows 33 cols 111; exec ssh ${client.map((word) => `'${word}'`).join(' ')} 'stty size; echo $TERM; tty' >'${seen}'`;
    expect((await fixture.program('script', ['-qec', inner, '/dev/null'])).code).toBe(0);
    expect((await readFile(seen, 'latin1')).replaceAll('^@', '')).toMatch(/33 111\r\n[\w-]+\r\n\/dev\/pts\/\d+/);
  });

  it('copies files by scp and by sftp', async () => {
    const [there, back] = [join(fixture.folder, 'there'), join(fixture.folder, 'back')];
    const bytes = randomBytes(3_000_000);
    await writeFile(there, bytes);
    const options = [...fixture.clientOptions(key), '-P', String(door.port)];
    expect(await fixture.program('scp', [...options, there, `${pod.podName}@127.0.0.1:/tmp/copy`])).toMatchObject({
      code: 0,
    });
    expect((await ssh(['sha256sum /tmp/copy'])).stdout).toContain(sha(bytes));
    const sftp = await fixture.program(
      'sftp',
      [...options, '-b', '-', `${pod.podName}@127.0.0.1`],
      `get /tmp/copy ${back}\nrename /tmp/copy /tmp/moved\n`,
    );
    expect(sftp).toMatchObject({ code: 0 });
    expect(sha(await readFile(back))).toBe(sha(bytes));
  });

  it('forwards ports (-L and -D) to the pod’s own loopback, and nowhere else', async () => {
    const [local, socks, elsewhere] = [await freePort(), await freePort(), await freePort()];
    const forwards = ['-L', `${local}:127.0.0.1:8080`, '-L', `${elsewhere}:1.1.1.1:80`, '-D', String(socks)];
    const client = spawn('ssh', [
      '-N',
      ...forwards,
      ...fixture.clientOptions(key),
      '-p',
      String(door.port),
      `${pod.podName}@127.0.0.1`,
    ]);
    const say = (port: number, first: Buffer | null = null) => conversation(port, first, 'hello');
    await until(async () => (await say(local)) === `${pod.podName}\nhello`);
    // SOCKS 5 (RFC 1928): no authentication, then CONNECT to localhost:8080 by name.
    const greeting = Buffer.concat([
      Buffer.from([5, 1, 0]),
      Buffer.from([5, 1, 0, 3, 9]),
      Buffer.from('localhost'),
      Buffer.from([8080 >> 8, 8080 & 255]),
    ]);
    expect(await say(socks, greeting)).toContain(`${pod.podName}\nhello`);
    expect(await say(elsewhere)).toBe('');
    client.kill();
    await once(client, 'close');
    const remote = await ssh(['-o', 'ExitOnForwardFailure=yes', '-R', '0:127.0.0.1:22', 'true']);
    expect(remote.code).not.toBe(0);
  });

  it('carries a script on standard input beside a SOCKS port, as VS Code’s Remote-SSH does', async () => {
    const socks = await freePort();
    const { stdout, code } = await ssh(
      ['-T', '-D', String(socks), 'bash'],
      'uname; echo "ready $BASHPID" | cut -d" " -f1; exit 0\n',
    );
    expect([stdout, code]).toEqual(['Linux\nready\n', 0]);
  });

  it('ends what a client that went away has left running', async () => {
    const client = spawn('ssh', [
      ...fixture.clientOptions(key),
      '-p',
      String(door.port),
      `${pod.podName}@127.0.0.1`,
      'echo go; exec sleep 4321',
    ]);
    await once(client.stdout, 'data');
    const isThere = () => sleeps(4321);
    await until(isThere);
    client.kill('SIGKILL');
    await until(async () => !(await isThere()));
  });

  describe('who comes in', () => {
    const denied = { code: 255, stdout: '', stderr: expect.stringContaining('Permission denied (publickey)') };

    it('answers an unknown key, another team’s pod and a pod that does not exist in the same words', async () => {
      const unknown = await fixture.key();
      const answers = [
        await fixture.ssh(door, unknown, pod.podName, ['true']),
        await fixture.ssh(door, key, (await fixture.pod()).podName, ['true']),
        await fixture.ssh(door, key, 'no-such-pod', ['true']),
      ];
      expect(answers).toEqual([denied, denied, denied]);
      expect(new Set(answers.map(({ stderr }) => stderr.replace(/^\S+@/, ''))).size).toBe(1);
    });

    it('takes RSA and ECDSA keys, and neither short RSA keys nor signatures with SHA-1', async () => {
      const [rsa, ecdsa, short] = [
        await fixture.key('-t', 'rsa', '-b', '3072'),
        await fixture.key('-t', 'ecdsa'),
        await fixture.key('-t', 'rsa', '-b', '2048'),
      ];
      for (const each of [rsa, ecdsa, short]) await fixture.invite(pod, each);
      for (const each of [rsa, ecdsa])
        expect(await fixture.ssh(door, each, pod.podName, ['true'])).toMatchObject({ code: 0 });
      expect(await fixture.ssh(door, short, pod.podName, ['true'])).toEqual(denied);
      expect(
        await fixture.ssh(door, rsa, pod.podName, ['-o', 'PubkeyAcceptedAlgorithms=ssh-rsa', 'true']),
      ).toMatchObject({ code: 255 });
    });

    it('refuses passwords, and lets nobody use the client’s agent', async () => {
      const words = [
        '-o',
        'PreferredAuthentications=password,keyboard-interactive',
        '-o',
        'NumberOfPasswordPrompts=1',
        'true',
      ];
      expect(await fixture.ssh(door, key, pod.podName, words)).toEqual(denied);
      expect((await ssh(['-A', 'echo "agent:$SSH_AUTH_SOCK"'])).stdout).toBe('agent:\n');
    });

    it('refuses while it cannot be decided', async () => {
      fixture.admissionControl.isDown = true;
      expect(await ssh(['true'])).toEqual(denied);
      fixture.admissionControl.isDown = false;
      expect((await ssh(['true'])).code).toBe(0);
    });

    it('limits the tries of a connection and the failures of a network, says so, and its holders come in elsewhere', async () => {
      const strict = await fixture.openDoor({ limits: { authTries: 1, failuresOfNetwork: 2 } });
      const foreign = [await fixture.key(), await fixture.key(), await fixture.key()];
      const before = fixture.admissionControl.asked;
      const offered = foreign.flatMap((file) => ['-i', file]);
      expect((await fixture.ssh(strict, key, pod.podName, [...offered, 'true'])).code).toBe(0);
      const none = await fixture.ssh(strict, foreign[0] ?? '', pod.podName, [...offered, 'true']);
      expect(none).toMatchObject({
        code: 255,
        stderr: expect.stringContaining('More keys were offered than the 1 that a connection may try.'),
      });
      expect(fixture.admissionControl.asked - before).toBeLessThanOrEqual(4);
      await fixture.ssh(strict, foreign[0] ?? '', pod.podName, ['true']);
      // From now on not even a good key is looked at from there.
      let late;
      // The door may hear of the end of a connection after its client does.
      do late = await fixture.ssh(strict, key, pod.podName, ['true']);
      while (late.code === 0);
      expect(late).toMatchObject({
        code: 255,
        stderr: expect.stringContaining('Too many log-ins from your network have failed.'),
      });
      expect((await ssh(['true'])).code).toBe(0);
    });

    it('cuts who connects and does not log in, and what is no SSH', async () => {
      const short = await fixture.openDoor({ limits: { logInGraceMs: 1_000 * timeoutFactor, startupsOfNetwork: 3 } });
      const sockets = Array.from({ length: 10 }, () =>
        connect({ host: '127.0.0.1', port: short.port ?? 0 }).on('error', () => undefined),
      );
      sockets[0]?.write('GET / HTTP/1.1\r\n\r\n');
      sockets[1]?.write(randomBytes(50_000));
      for (const socket of sockets) socket.resume();
      await until(() => sockets.every(({ closed }) => closed));
      // The door may hear of the last of them after they do.
      await until(async () => (await fixture.ssh(short, key, pod.podName, ['true'])).code === 0);
    });

    it('says that the pod does not run to whom it is', async () => {
      const [stopped, own] = [await fixture.pod(), await fixture.key()];
      await fixture.invite(stopped, own, { run: null });
      const { code, stderr } = await fixture.ssh(door, own, stopped.podName, ['true']);
      expect([code, stderr]).toEqual([1, 'The pod is not running. Start it, then log in again.\n']);
    });
  });

  it('writes who logged in, from where, and why it ended', async () => {
    await ssh(['true']);
    const own = () => fixture.trail.entries.filter((entry) => entry.userId === userId);
    await until(() => own().at(-1)?.reason !== undefined);
    expect(own().at(-1)).toEqual({ userId, address: '127.0.0.1', reason: 'the client left' });
  });

  it('outlives clients that reset their connection, and records that they left', async () => {
    const before = fixture.trail.entries.length;
    const relay = createServer((socket) => {
      const inner = connect({ host: '127.0.0.1', port: door.port ?? 0 });
      socket.on('error', () => undefined).pipe(inner);
      inner.pipe(socket);
      inner.on('close', () => socket.destroy());
      resets.push(() => inner.resetAndDestroy());
    }).listen(0, '127.0.0.1');
    const resets: (() => void)[] = [];
    await once(relay, 'listening');
    const { port } = relay.address() as AddressInfo;
    const open = fixture.ssh({ port } as SshDoor, key, pod.podName, ['sleep 60']);
    await until(() => fixture.trail.entries.length > before);
    resets.forEach((reset) => reset());
    await until(() => fixture.trail.entries[before]?.reason === 'the client left');
    relay.close();
    await open;
  });

  it('ends open sessions of who may not stay, with a word, and what they ran', async () => {
    const [inviteeKey, sentence] = [await fixture.key(), 'Your key was removed.'];
    const { userId: invitee } = await fixture.invite(pod, inviteeKey);
    const open = fixture.ssh(door, inviteeKey, pod.podName, ['echo go; sleep 5432']);
    const other = ssh(['sleep 2; echo done']);
    const isIn = () => fixture.trail.entries.some((entry) => entry.userId === invitee);
    await until(isIn);
    await until(() => sleeps(5432));
    fixture.admissionControl.revocations.set(invitee, sentence);
    await fixture.registry.look(invitee);
    const { code, stderr } = await open;
    expect(code).toBe(255);
    expect(stderr).toContain(sentence);
    await until(async () => !(await sleeps(5432)));
    expect((await other).stdout).toBe('done\n');
    await until(() => fixture.trail.entries.some((entry) => entry.userId === invitee && entry.reason === sentence));
  });

  it('looks by time too, where no broadcast came', async () => {
    const over = new AbortController();
    void fixture.registry.lookByTime(100, over.signal);
    const inviteeKey = await fixture.key();
    const { userId: invitee } = await fixture.invite(pod, inviteeKey);
    const open = fixture.ssh(door, inviteeKey, pod.podName, ['sleep 60']);
    await until(() => fixture.trail.entries.some((entry) => entry.userId === invitee));
    fixture.admissionControl.revocations.set(invitee, 'You are no longer a member of the team.');
    expect((await open).code).toBe(255);
    over.abort();
  });

  it('ends with the pod', async () => {
    const [mortal, own] = [await fixture.pod(), await fixture.key()];
    await fixture.invite(mortal, own);
    const open = fixture.ssh(door, own, mortal.podName, ['echo go; sleep 6543']);
    await until(() => sleeps(6543, mortal, own));
    await fixture.driver.stopPod(mortal.ref, 0, AbortSignal.timeout(10_000 * timeoutFactor));
    expect((await open).stderr).toBe(`The pod ${mortal.podName} has stopped or restarted.\n`);
  });

  it('is one of two replicas: the second takes the port when the first lets it go, with the same host key', async () => {
    const port = await freePort();
    const first = await fixture.openDoor({ port });
    const second = fixture.door({ port });
    const opened = second.open();
    expect((await fixture.ssh(first, key, pod.podName, ['true'])).code).toBe(0);
    expect(second.port).toBeNull();
    await first.close();
    await opened;
    // `StrictHostKeyChecking` with the same file of known hosts: another key would be refused.
    expect((await fixture.ssh(second, key, pod.podName, ['-o', 'StrictHostKeyChecking=yes', 'true'])).code).toBe(0);
  });
});

/** What comes back for this text, until the end; `first`: the opening of a SOCKS connection. */
async function conversation(port: number, first: Buffer | null, text: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port }).on('error', () => undefined);
  let all = '';
  socket.on('data', (data: Buffer) => {
    all += data.toString('latin1');
    // OpenSSH gives up a SOCKS connection that has ended before its own side is open.
    if (first && all.includes(text)) socket.end();
  });
  if (first) socket.write(Buffer.concat([first, Buffer.from(text)]));
  else socket.end(text);
  await new Promise((resolve) => socket.once('close', resolve));
  return all;
}
