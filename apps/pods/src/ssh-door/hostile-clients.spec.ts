import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Duplex, PassThrough, Readable, Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { ClusterDriver, Shell } from '@atoll/cluster';
import type { Client, ClientChannel } from 'ssh2';
import { OpenDoorFixture } from './open-door-fixture.js';

/** What ssh2 has of a client and of its channels, and does not show. */
interface Inside {
  readonly _sock: Socket;
  readonly _protocol: {
    session(id: number, window: number, packetBytes: number): void;
    channelData(id: number, data: Buffer): void;
    rekey(): void;
  };
}

const mib = 1024 * 1024;
/** More than the buffers of all on the way take, and much less than a window of 4 GiB. */
const muchBytes = 32 * mib;

let fixture: OpenDoorFixture;
let client: Client;
let inside: Inside;
/** Bytes that processes have written. */
let written: number;
/** Writes that wait in pods, until `take`. */
let untaken: (() => void)[];
let key: ReturnType<OpenDoorFixture['key']>;
beforeEach(async () => {
  [written, untaken] = [0, []];
  fixture = await OpenDoorFixture.start({ sessions: 80, untakenBytes: 32 * mib, untakenBytesOfUser: 8 * mib });
  const connect = () => Promise.resolve(new Duplex({ read: () => undefined, write: untakenWrite }));
  const driver = { openShell: () => Promise.resolve(openShell()), connect } as unknown as ClusterDriver;
  const run = { driver, ref: { kind: 'pod', id: 'p1', run: 1 } as const };
  key = fixture.key({ run });
  ({ client } = await fixture.logIn([key]));
  inside = client as unknown as Inside;
});
afterEach(() => fixture.stop());

/** Of a program in a pod that takes nothing, until `take`. */
const untakenWrite = (_chunk: unknown, _encoding: unknown, done: () => void): void => void untaken.push(done);

/** A process that writes without end, and reads what the spec has it read. */
function openShell(): Shell {
  const { promise: exit, resolve: end } = Promise.withResolvers<{ code: number }>();
  const stdout = new Readable({
    read(bytes) {
      written += bytes;
      setImmediate(() => this.push(Buffer.alloc(bytes)));
    },
  });
  const stdin = new Writable({ write: untakenWrite });
  const [gesture, close] = [() => Promise.resolve(), () => Promise.resolve(end({ code: 129 }))];
  return { stdin, stdout, stderr: new PassThrough().end(), exit, resize: gesture, signal: gesture, close };
}

function take(): void {
  for (const done of untaken.splice(0)) done();
}

function command(window?: number): Promise<ClientChannel> {
  const { session } = inside._protocol;
  inside._protocol.session = function (id, usual, packetBytes) {
    session.call(this, id, window ?? usual, packetBytes);
  };
  return new Promise<ClientChannel>((resolve, reject) => {
    client.exec('x', (error, channel) => (error ? reject(error) : resolve(channel.on('error', () => undefined))));
    inside._protocol.session = session;
  });
}

const idOf = (channel: ClientChannel): number => (channel as unknown as { outgoing: { id: number } }).outgoing.id;

it.each([
  ['reads nothing', () => undefined],
  ['does not end a key exchange', () => inside._protocol.rekey()],
])('what a pod writes waits in the pod while a client %s, however wide its window is', async (_what, begin) => {
  const channel = await command(0xff_ff_ff_ff);
  begin();
  inside._sock.pause();
  for (let turns = 0; turns < 3_000 && written < muchBytes; turns += 1) await nextTurn();
  expect(written).toBeLessThan(muchBytes);
  inside._sock.resume();
  const before = written;
  let bytes = 0;
  for await (const chunk of channel as AsyncIterable<Buffer>) if ((bytes += chunk.length) > before) break;
  expect(bytes).toBeGreaterThan(before);
});

it('a client that sends more than the window of a channel allows is disconnected, and told why', async () => {
  const id = idOf(await command());
  const told = once(client, 'error');
  // No multiple of it is the window, so that ssh2 never counts it as used up.
  for (let sent = 0; sent < mib; sent += 32_767) inside._protocol.channelData(id, Buffer.alloc(32_767));
  expect(String((await told)[0])).toContain('More was sent on a channel than its window allows.');
  await once(client, 'close');
  while (fixture.trail.ends.length === 0) await nextTurn();
  expect(fixture.trail.ends).toEqual(['the client sent more than a channel allowed']);
});

/** Resolves once the door has read all that was sent before. */
const answer = () => new Promise<void>((resolve) => client.forwardIn('127.0.0.1', 0, () => resolve()));

it('a client is read on where its pods take nothing on many channels, so that it may say that it has read their output', async () => {
  const channels = await Promise.all(Array.from({ length: 16 }, () => command()));
  // Of each, all is taken that comes before, so that its client may send more than in the beginning.
  for (const channel of channels) channel.write(Buffer.alloc(mib));
  for (let isTaken = false; !isTaken; await nextTurn()) {
    take();
    isTaken = channels.every(({ writableLength }) => writableLength === 0);
  }
  for (const channel of channels) channel.write(Buffer.alloc(4 * mib));
  for (let turns = 0; turns < 1_000; turns += 1) await nextTurn();
  await answer();
  // An answer comes where the client is cut off, too; a further command does not begin then.
  await command();
});

it('of a user whose pods do not take their input, nothing more is read than a user may have, until they take it', async () => {
  // Even with narrow windows they may send 10 MiB.
  const channels = await Promise.all(Array.from({ length: 80 }, () => command()));
  // More than its window takes.
  for (const channel of channels) channel.write(Buffer.alloc(mib / 4));
  let isAnswered = false;
  // An answer comes after all that was sent before.
  const answered = new Promise<void>((resolve) => client.forwardIn('127.0.0.1', 0, () => resolve()));
  void answered.then(() => (isAnswered = true));
  for (let turns = 0; turns < 3_000; turns += 1) await nextTurn();
  expect(isAnswered).toBe(false);
  for (; !isAnswered; await nextTurn()) take();
});

it('what a client that has left sent into forwarded connections counts for its user, until pods take it', async () => {
  const forward = promisify(client.forwardOut.bind(client, '127.0.0.1', 1, '127.0.0.1', 8080));
  const channels = await Promise.all(Array.from({ length: 56 }, () => forward()));
  for (const channel of channels) channel.on('error', () => undefined).write(Buffer.alloc(mib / 4));
  await answer();
  client.destroy();
  while (fixture.trail.ends.length === 0) await nextTurn();
  ({ client } = await fixture.logIn([key]));
  inside = client as unknown as Inside;
  // With these, more than 8 MiB.
  const more = await Promise.all(Array.from({ length: 16 }, () => command()));
  for (const channel of more) channel.write(Buffer.alloc(mib / 4));
  let isAnswered = false;
  const answered = answer().then(() => (isAnswered = true));
  for (let turns = 0; turns < 3_000; turns += 1) await nextTurn();
  expect(isAnswered).toBe(false);
  for (; !isAnswered; await nextTurn()) take();
  await answered;
});
