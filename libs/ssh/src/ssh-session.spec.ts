import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { describeWhere, freePort, hostsLack, startSshHost, timeoutFactor, type SshHost } from '@atoll/testing';
import ssh2 from 'ssh2';
import { generateKeyPair } from './private-key.js';
import { SshError } from './ssh-error.js';
import { SshSession, type SshTarget } from './ssh-session.js';

const local = { allowLoopback: true };
const soon = () => AbortSignal.timeout(300);
const patient = () => AbortSignal.timeout(20_000 * timeoutFactor);
const sessions: SshSession[] = [];
afterEach(() => sessions.splice(0).forEach((session) => session.close()));

async function open(target: SshTarget, signal = patient()): Promise<SshSession> {
  const session = await SshSession.open(target, local, signal);
  sessions.push(session);
  return session;
}

async function kindOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    return error instanceof SshError ? error.kind : String(error);
  }
  return 'none';
}

describeWhere(hostsLack(), 'a session with a real sshd', () => {
  let host: SshHost;
  let target: SshTarget;
  beforeAll(async () => {
    host = await startSshHost();
    target = {
      host: '127.0.0.1',
      port: host.port,
      user: 'root',
      credential: { password: host.password },
      hostKey: host.hostKey,
    };
  });
  afterAll(() => host.stop());

  it('gives back code, output and errors of a command, and hands its input through no command line', async () => {
    const session = await open(target);
    const command = 'cat > /tmp/secret; ps -e -o args=; echo careful >&2; exit 3';
    const result = await session.run({ command, input: 'hunter2' }, patient());
    expect(result).toMatchObject({ code: 3, signal: null, stderr: 'careful\n' });
    expect(result.stdout).toContain('cat > /tmp/secret');
    expect(result.stdout).not.toContain('hunter2');
    expect(await host.inside('cat /tmp/secret')).toBe('hunter2');
  });

  it('tells the host key on first use, and refuses another one later', async () => {
    expect((await open({ ...target, hostKey: null })).hostKey).toBe(host.hostKey);
    expect(await kindOf(open({ ...target, hostKey: 'SHA256:another' }))).toBe('host_key_changed');
  });

  it('logs in by key, also one with a passphrase, and by keyboard-interactive where only that is allowed', async () => {
    const { privateKey, publicKey } = generateKeyPair('open sesame');
    await host.inside(`mkdir -p ~root/.ssh && echo '${publicKey}' > ~root/.ssh/authorized_keys`);
    await open({ ...target, credential: { privateKey, passphrase: 'open sesame' } });
    const interactive = await startSshHost({
      sshd: ['-o PasswordAuthentication=no', '-o KbdInteractiveAuthentication=yes', '-o UsePAM=yes'],
    });
    try {
      await open({ ...target, port: interactive.port, hostKey: interactive.hostKey });
    } finally {
      await interactive.stop();
    }
  });

  it('is refused for good with a wrong password or key', async () => {
    const { privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 3072,
      privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
      publicKeyEncoding: { type: 'pkcs1', format: 'pem' },
    });
    expect(await kindOf(open({ ...target, credential: { password: 'wrong' } }))).toBe('authentication');
    expect(await kindOf(open({ ...target, credential: { privateKey } }))).toBe('authentication');
  });

  it('gives up a command that does not end, and one that writes without end', async () => {
    const session = await open(target);
    expect(await kindOf(session.run({ command: 'sleep 1000' }, soon()))).toBe('timeout');
    expect(await kindOf(session.run({ command: 'true' }, patient()))).toBe('cut');
    const other = await open(target);
    expect(await kindOf(other.run({ command: 'yes', maxOutputBytes: 100_000 }, patient()))).toBe('output_too_large');
  });

  it('says that nobody knows how a command ended that was killed', async () => {
    const session = await open(target);
    expect(await session.run({ command: 'kill -TERM $$' }, patient())).toMatchObject({ code: null, signal: 'SIGTERM' });
  });

  it('is cut when the host ends it in the middle of a command', async () => {
    const session = await open(target);
    const running = kindOf(session.run({ command: 'touch /tmp/begun; sleep 1000' }, patient()));
    await session.run({ command: 'while ! [ -e /tmp/begun ]; do sleep 0.01; done' }, patient());
    await host.inside(`pkill -KILL -f 'sshd: root'`);
    expect(await running).toBe('cut');
  });

  it('ends by its signal on a host that is frozen', async () => {
    const session = await open(target);
    host.pause();
    try {
      expect(await kindOf(session.run({ command: 'true' }, soon()))).toBe('timeout');
      expect(await kindOf(open(target, soon()))).toBe('timeout');
    } finally {
      host.resume();
    }
  });

  it('tells that the host is busy where it takes no further session', async () => {
    const narrow = await startSshHost({ sshd: ['-o MaxSessions=1'] });
    try {
      const session = await open({ ...target, port: narrow.port, hostKey: narrow.hostKey });
      const first = session.run({ command: 'cat' }, patient()).catch(() => undefined);
      expect(
        await kindOf(
          Promise.race([
            session.run({ command: 'sleep 5' }, patient()),
            session.run({ command: 'sleep 5' }, patient()),
          ]),
        ),
      ).toBe('busy');
      session.close();
      await first;
    } finally {
      await narrow.stop();
    }
  });
});

describe('a session with what is no sshd', () => {
  const servers: Pick<Server, 'close'>[] = [];
  const sockets: Socket[] = [];
  afterEach(() => {
    sockets.splice(0).forEach((socket) => socket.destroy());
    servers.splice(0).forEach((server) => server.close());
  });

  async function target(answer: (socket: Socket) => void): Promise<SshTarget> {
    const server = createServer((socket) => {
      sockets.push(socket.on('error', () => undefined));
      answer(socket);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return { host: '127.0.0.1', port, user: 'root', credential: { password: 'x' }, hostKey: null };
  }

  it('fails by what is wrong with it', async () => {
    const silent = await target(() => undefined);
    expect(await kindOf(open(silent, soon()))).toBe('timeout');
    expect(await kindOf(SshSession.open(silent, { ...local, connectMs: 200 }, new AbortController().signal))).toBe(
      'timeout',
    );
    expect(
      await kindOf(open(await target((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')), patient())),
    ).toBe('not_ssh');
    expect(await kindOf(open(await target((socket) => socket.write('SSH-1.99-old\r\n')), soon()))).toMatch(
      /^(not_ssh|timeout)$/,
    );
    expect(await kindOf(open(await target((socket) => socket.destroy()), patient()))).toBe('cut');
    expect(await kindOf(open({ ...silent, port: await freePort() }))).toBe('refused');
    expect(await kindOf(open({ ...silent, host: 'no-such-host.invalid' }))).toBe('name');
  });

  it('ends one that sends requests without end beside the output of a command', async () => {
    const { privateKey: key } = generateKeyPair();
    const server = new ssh2.Server({ hostKeys: [key] }, (client) => {
      client.on('error', () => undefined).on('authentication', (attempt) => attempt.accept());
      client.on('session', (accept) => accept().on('exec', () => undefined));
      client.on('ready', () => {
        for (let sent = 0; sent < 40; sent += 1) client.x11('x'.repeat(30_000), 1, () => undefined);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    servers.push(server);
    const { port } = server.address() as AddressInfo;
    const host = { host: '127.0.0.1', port, user: 'root', credential: { password: 'x' }, hostKey: null };
    const attempt = open(host).then((session) => session.run({ command: 'true' }, patient()));
    expect(await kindOf(attempt)).toBe('output_too_large');
  });

  it('survives random bytes', async () => {
    const bytes = await target((socket) =>
      socket.write(Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 7919) % 256))),
    );
    expect(await kindOf(open(bytes, soon()))).toMatch(/^(not_ssh|timeout|cut)$/);
  });
});

it('a session learns how a command ended whose end comes in one packet with its beginning', async () => {
  const { privateKey: key } = generateKeyPair();
  const server = new ssh2.Server({ hostKeys: [key] }, (client) => {
    client.on('error', () => undefined).on('authentication', (attempt) => attempt.accept());
    client.on('session', (accept) => {
      accept().on('exec', (acceptExec) => {
        const channel = acceptExec();
        channel.resume();
        channel.write('done');
        channel.exit(7);
        channel.end();
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const session = await open({ host: '127.0.0.1', port, user: 'root', credential: { password: 'x' }, hostKey: null });
    expect(await session.run({ command: 'true' }, patient())).toMatchObject({ code: 7, stdout: 'done' });
  } finally {
    server.close();
  }
});
