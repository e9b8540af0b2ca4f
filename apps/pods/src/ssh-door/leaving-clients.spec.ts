import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { Duplex, PassThrough, Writable } from 'node:stream';
import type { ClusterDriver, Shell } from '@atoll/cluster';
import type { Client, ClientChannel } from 'ssh2';
import { OpenDoorFixture } from './open-door-fixture.js';

let fixture: OpenDoorFixture;
let client: Client;
/** Each resolves when its shell is closed. */
let shells: Promise<void>[];
/** Into the pod. */
let connections: Duplex[];
/** The server in the pod, which takes nothing by itself. */
let take: (chunk: Buffer, done: () => void) => void;
beforeEach(async () => {
  [shells, connections, take] = [[], [], () => undefined];
  fixture = await OpenDoorFixture.start({ forwards: 1, takeMs: 1_000 });
  const driver = { openShell: () => Promise.resolve(openShell()), connect: () => Promise.resolve(connect()) };
  const run = { driver: driver as unknown as ClusterDriver, ref: { kind: 'pod', id: 'p1', run: 1 } as const };
  ({ client } = await fixture.logIn([fixture.key({ run })]));
});
afterEach(() => fixture.stop());

function openShell(): Shell {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { promise: exit, resolve: end } = Promise.withResolvers<{ code: number }>();
  shells.push(promise);
  const close = () => {
    end({ code: 129 });
    return Promise.resolve(resolve());
  };
  const stdin = new Writable({ write: () => undefined });
  const gesture = () => Promise.resolve();
  return { stdin, stdout: new PassThrough(), stderr: new PassThrough(), exit, resize: gesture, signal: gesture, close };
}

function connect(): Duplex {
  const write = (chunk: Buffer, _encoding: unknown, done: () => void) => take(chunk, done);
  const connection = new Duplex({ read: () => undefined, write });
  connections.push(connection.on('error', () => undefined));
  return connection;
}

const command = () => opened((done) => client.exec('x', done));
const forward = () => opened((done) => client.forwardOut('127.0.0.1', 1, '127.0.0.1', 8080, done));

function opened(open: (done: (error: Error | undefined, channel: ClientChannel) => void) => void) {
  return new Promise<ClientChannel>((resolve, reject) => {
    open((error, channel) => (error ? reject(error) : resolve(channel.on('error', () => undefined))));
  });
}

/** Sends a channel more than its window, so that the door holds input that nothing takes. */
async function fill(channel: ClientChannel): Promise<void> {
  channel.write(Buffer.alloc(4 * 1024 * 1024));
  const { outgoing } = channel as unknown as { outgoing: { window: number } };
  while (outgoing.window > 0) await new Promise(setImmediate);
  // An answer comes after all that was sent before.
  await new Promise((resolve) => client.forwardIn('127.0.0.1', 0, resolve));
}

it.each([
  ['is gone', () => client.destroy()],
  ['closes its channel', (channel: ClientChannel) => channel.close()],
])('a process ends whose client %s while its input waits', async (_what, leave) => {
  const channel = await command();
  await fill(channel);
  leave(channel);
  await shells[0];
});

it('a forwarded connection ends whose client is gone while its input waits', async () => {
  await fill(await forward());
  client.destroy();
  await once(connections[0]!, 'close');
});

it('a forwarded connection ends whose client closes its channel while its input waits, and makes room for another', async () => {
  const channel = await forward();
  await fill(channel);
  await expect(forward()).rejects.toThrow('Channel open failure');
  channel.close();
  await once(connections[0]!, 'close');
  await forward();
  expect(connections).toHaveLength(2);
});

it('a forwarded connection whose client closes its channel ends when the server has taken all of its input, as slow as it is', async () => {
  let taken = 0;
  take = (chunk, done) => {
    taken += chunk.length;
    setTimeout(done, 60);
  };
  const channel = await forward();
  const sent = 2 * 1024 * 1024;
  channel.end(Buffer.alloc(sent));
  // Once all is sent, not once it is taken.
  await once(channel, 'finish');
  expect(taken).toBeLessThan(sent);
  channel.close();
  await once(connections[0]!, 'close');
  expect(taken).toBe(sent);
});
