import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from '@jest/globals';
import { generateKeyPair } from '@atoll/ssh';
import { StepFailed } from '@atoll/state-machine';
import { freePort } from '@atoll/testing';
import ssh2, { type ServerChannel } from 'ssh2';
import type { HostRef, Tenancy } from './host-driver.js';
import { SshHosts } from './ssh-hosts.js';

const hosts = new SshHosts({ allowLoopback: true, maxConnections: 5, waitMs: 60_000 });
const stops: (() => void)[] = [];
afterEach(() => stops.splice(0).forEach((stop) => stop()));

const tenancy: Tenancy = {
  instanceId: '0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10',
  username: 'atl-2b1f0c9c7a',
  password: 'K7mQ2vXw9RtYb4NcHs8ZpLfA',
  proofKey: generateKeyPair(),
  keys: [],
  hasSudo: false,
  home: 'remove',
  fence: '1',
};

/** An SSH server that takes the platform's log-in, and does with a command what it wants. */
async function startServer(
  onCommand: (channel: ServerChannel, end: () => void) => void,
  isTaken: (user: string, password: string) => boolean = (user, password) => user === 'root' && password === 'operator',
): Promise<HostRef> {
  const { privateKey: key } = generateKeyPair();
  const server = new ssh2.Server({ hostKeys: [key] }, (client) => {
    stops.push(() => client.end());
    client.on('error', () => undefined);
    client.on('authentication', (attempt) => {
      if (attempt.method === 'password' && isTaken(attempt.username, attempt.password)) attempt.accept();
      else attempt.reject(['password']);
    });
    client.on('session', (accept) => {
      accept().on('exec', (acceptExec) => onCommand(acceptExec(), () => client.end()));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  return {
    nodeId: '1',
    name: 'metal',
    driver: 'ssh',
    host: '127.0.0.1',
    port,
    user: 'root',
    credential: { password: 'operator' },
    hostKey: null,
  };
}

const answers =
  (output: string, code = 0) =>
  (channel: ServerChannel) => {
    channel.resume();
    channel.write(output);
    channel.exit(code);
    channel.end();
  };

async function failureOf(
  host: HostRef,
  operation: (host: HostRef) => Promise<unknown>,
): Promise<[string, boolean, string]> {
  try {
    await operation(host);
  } catch (error) {
    if (error instanceof StepFailed) return [error.code, error.isPermanent, error.message];
    throw error;
  }
  return ['none', false, ''];
}
const within = (ms = 60_000) => ({ signal: AbortSignal.timeout(ms) });
const reach = (host: HostRef) => hosts.reach(host, within());

describe('a host that misbehaves fails by what is wrong with it', () => {
  it('refuses connections', async () => {
    const host = await startServer(answers(''));
    expect(await failureOf({ ...host, port: await freePort() }, reach)).toEqual([
      'host_refused',
      false,
      expect.anything(),
    ]);
  });

  it('hangs before it says who it is, or in a command', async () => {
    const hanging = await startServer(() => undefined);
    expect(await failureOf(hanging, (host) => hosts.reach(host, within(300)))).toEqual([
      'host_timeout',
      false,
      expect.anything(),
    ]);
  });

  it('refuses the log-in', async () => {
    const host = await startServer(answers(''));
    expect(await failureOf({ ...host, credential: { password: 'wrong' } }, reach)).toEqual([
      'login_refused',
      true,
      expect.anything(),
    ]);
  });

  it('shows another host key than the one that is pinned', async () => {
    const host = await startServer(answers('atoll-ready\n'));
    const { hostKey } = await hosts.inspect(host, within());
    expect(await failureOf({ ...host, hostKey }, reach)).toEqual(['none', false, '']);
    expect(await failureOf({ ...host, hostKey: `SHA256:${'x'.repeat(43)}` }, reach)).toEqual([
      'host_key_changed',
      true,
      expect.anything(),
    ]);
  });

  it('drops the connection in a command', async () => {
    const host = await startServer((_channel, end) => end());
    expect(await failureOf(host, (to) => hosts.createUser(to, tenancy, within()))).toEqual([
      'connection_lost',
      false,
      expect.anything(),
    ]);
  });

  it('writes without end', async () => {
    const host = await startServer((channel) => {
      channel.on('error', () => undefined).resume();
      const more = (): void => {
        while (!channel.destroyed && channel.write('y\n'.repeat(1_000)));
        channel.once('drain', more);
      };
      more();
    });
    expect(await failureOf(host, reach)).toEqual(['output_too_large', false, expect.anything()]);
  });

  it('gives no privileges', async () => {
    const asks = await startServer((channel) => {
      channel.resume();
      channel.stderr.write('sudo: a password is required\n');
      channel.exit(1);
      channel.end();
    });
    expect(await failureOf(asks, reach)).toEqual([
      'no_privileges',
      true,
      'root is not root and has no password-less sudo: sudo: a password is required.',
    ]);
    expect(await failureOf(await startServer(answers('', 127)), reach)).toMatchObject([
      'no_privileges',
      true,
      expect.stringContaining('the host lacks sudo'),
    ]);
  });

  it('says what went wrong in characters that nobody should see', async () => {
    const host = await startServer(
      answers(`atoll-ready\natoll-failed useradd_failed \x1b[31mno\u202e room ${'x'.repeat(900)}\n`, 1),
    );
    const [code, isPermanent, message] = await failureOf(host, (to) => hosts.createUser(to, tenancy, within()));
    expect([code, isPermanent, message.length]).toEqual(['useradd_failed', false, 300]);
    expect(message).toMatch(/^\?\[31mno\?+ room x+$/);
  });

  it('lies about success: the log-in tells', async () => {
    const host = await startServer(answers('atoll-ready\n'));
    expect(await failureOf(host, (to) => hosts.setPassword(to, tenancy, within()))).toEqual(['none', false, '']);
    expect(await failureOf(host, (to) => hosts.verify(to, tenancy, within()))).toEqual([
      'password_refused',
      false,
      'The host refuses the log-in with the password that was just set.',
    ]);
  });

  it('lets everybody in: who comes in is not the user who was created', async () => {
    const host = await startServer(answers('atoll-ready\nroot\n'), () => true);
    expect(await failureOf(host, (to) => hosts.verify(to, tenancy, within()))).toEqual([
      'password_refused',
      false,
      expect.anything(),
    ]);
  });
});

it('hosts that say nothing keep at most half of the connections from what somebody waits for', async () => {
  const four = new SshHosts({ allowLoopback: true, maxConnections: 4, waitMs: 60_000 });
  const begun: string[] = [];
  const half = Promise.withResolvers<void>();
  const silent = async (name: string) =>
    startServer(() => {
      begun.push(name);
      if (begun.length === 2) half.resolve();
    });
  const end = new AbortController();
  const looks = [];
  for (const [at, look] of (['look', 'inspect', 'look', 'inspect'] as const).entries()) {
    const host = await silent(`silent ${at}`);
    looks.push(failureOf(host, (to) => four[look](to, { signal: end.signal })));
  }
  await half.promise;
  const healthy = await startServer(answers('atoll-ready\n'));
  for (let step = 0; step < 10; step += 1)
    expect(await failureOf(healthy, (host) => four.reach(host, within()))).toEqual(['none', false, '']);
  expect(begun).toHaveLength(2);
  end.abort();
  expect((await Promise.all(looks)).map(([code]) => code).sort()).toEqual([
    'connections_in_use',
    'connections_in_use',
    'host_timeout',
    'host_timeout',
  ]);
});

describe('a call to a host', () => {
  const crowded = ['connections_in_use', false, 'All SSH connections of Atoll are in use.'];

  it.each([
    ['has waited long enough', 50, 60_000],
    ['is given up', 60_000, 50],
  ])(
    'that %s before it has a connection has not begun, and is no failure of the host',
    async (_when, waitMs, signalMs) => {
      const few = new SshHosts({ allowLoopback: true, maxConnections: 2, waitMs });
      const begun = Promise.withResolvers<void>();
      const busy = await startServer(() => begun.resolve());
      const end = new AbortController();
      const held = failureOf(busy, (host) => few.reach(host, { signal: end.signal }));
      await begun.promise;
      expect(await failureOf(busy, (host) => few.reach(host, within(signalMs)))).toEqual(crowded);
      const other = await startServer(answers('atoll-ready\n'));
      expect(await failureOf(other, (host) => few.reach(host, within()))).toEqual(['none', false, '']);
      end.abort();
      await held;
    },
  );
});
