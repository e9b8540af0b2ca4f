import { PassThrough, Writable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { ServerChannel } from 'ssh2';
import { ChannelInput, UnreadInput, type CountedClient } from './unread-input.js';

class CountedFake implements CountedClient {
  bytes = 0;
  wide = 0;
  readonly room = Promise.withResolvers<void>();

  constructor(readonly userId: string) {}

  untakenBytes(): number {
    return this.bytes;
  }

  wideChannels(): number {
    return this.wide;
  }

  readOn(): void {
    this.room.resolve();
  }
}

const clientWith = (userId: string, bytes: number) => Object.assign(new CountedFake(userId), { bytes });

it('reads no more of the clients of a user who has too much, but of those of which nothing waits, and of other users', () => {
  const unread = new UnreadInput({ all: 1_000, ofUser: 100 });
  const [one, other] = [clientWith('ada', 60), clientWith('ada', 60)];
  expect(unread.takes(one)).toBe(true);
  expect(unread.takes(other)).toBe(false);
  expect(unread.takes(clientWith('ada', 0))).toBe(true);
  expect(unread.takes(clientWith('bob', 60))).toBe(true);
  unread.leave(other);
  expect(unread.takes(one)).toBe(true);
  for (const client of [one, other]) unread.leave(client);
});

it('all users together have less than there is, however many they are', () => {
  const unread = new UnreadInput({ all: 1_000, ofUser: 100 });
  const clients = Array.from({ length: 100 }, (_, at) => clientWith(`user ${at}`, 0));
  for (const client of clients) while (client.bytes < 200 && unread.takes(client)) client.bytes += 1;
  const bytes = clients.reduce((sum, client) => sum + client.bytes, 0);
  expect(bytes).toBeGreaterThan(500);
  expect(bytes).toBeLessThan(1_100);
  for (const client of clients) unread.leave(client);
});

it('reads on where the pods of another client of the user have taken what waited', async () => {
  const unread = new UnreadInput({ all: 1_000, ofUser: 100 });
  const [idle, held] = [clientWith('ada', 90), clientWith('ada', 20)];
  unread.takes(idle);
  expect(unread.takes(held)).toBe(false);
  idle.bytes = 0;
  await held.room.promise;
});

/** A channel of ssh2, with what it allows its client to send. */
class FakeChannel extends PassThrough {
  readonly incoming = { window: 0 };
  readonly outgoing = { id: 1, state: 'open' };
  readonly _client = { _protocol: { channelWindowAdjust: () => undefined } };

  /** What a client does that has all this to send, as far as it may. */
  receive(bytes: number): void {
    const sent = Math.min(bytes, this.incoming.window);
    this.incoming.window -= sent;
    if (sent > 0) this.push(Buffer.alloc(sent));
  }
}

const inputOf = (channel: FakeChannel, mayWiden = false) =>
  new ChannelInput(channel as unknown as ServerChannel, { mayWiden: () => mayWiden, ended: () => undefined });

it('counts bytes until the pod has taken them, and more than its bytes for each small chunk', async () => {
  const channel = new FakeChannel();
  const input = inputOf(channel);
  for (let at = 0; at < 1_000; at += 1) channel.receive(1);
  expect(input.bytes).toBeGreaterThan(100_000);
  // Of a large buffer, like that of a connection into a pod.
  const taken = Promise.withResolvers<void>();
  const write = (_chunk: Buffer, _encoding: unknown, done: () => void) => void taken.promise.then(done);
  channel.pipe(input.sinkTo(new Writable({ highWaterMark: 2 * 1024 * 1024, write })));
  for (let turns = 0; turns < 100; turns += 1) await nextTurn();
  expect(input.bytes).toBeGreaterThan(100_000);
  taken.resolve();
  while (input.bytes > 0) await nextTurn();
  expect(input.isOverrun).toBe(false);
  channel.incoming.window = -1;
  expect(input.isOverrun).toBe(true);
});

it.each([
  ['the narrow', false, 128 * 1024],
  ['the wide', true, 2 * 1024 * 1024],
])(
  'with %s window a client sends what its pod takes, and little where it takes nothing',
  async (_w, mayWiden, most) => {
    const channel = new FakeChannel();
    const input = inputOf(channel, mayWiden);
    const taken = Promise.withResolvers<void>();
    let [bytes, isTaking] = [0, true];
    // As large a buffer as a connection into a pod has: it never asks to wait.
    const target = new Writable({
      highWaterMark: 2 * most,
      write(chunk: Buffer, _encoding, done) {
        bytes += chunk.length;
        if (isTaking) setImmediate(done);
        else void taken.promise.then(() => done());
      },
    });
    channel.pipe(input.sinkTo(target));
    for (; bytes < 10 * most; await nextTurn()) channel.receive(30_000);
    isTaking = false;
    for (let turns = 0; turns < 1_000; turns += 1, await nextTurn()) channel.receive(30_000);
    expect([channel.incoming.window, input.isWide]).toEqual([0, mayWiden]);
    expect(channel.readableLength + target.writableLength).toBeLessThanOrEqual(most);
    isTaking = true;
    taken.resolve();
    const before = bytes;
    for (; bytes < before + 10 * most; await nextTurn()) channel.receive(30_000);
  },
);

it('of a user, as many channels have the wide window as half of what may wait is for', () => {
  const mib = 1024 * 1024;
  const unread = new UnreadInput({ all: 64 * mib, ofUser: 16 * mib });
  const [one, other, ofBob] = [clientWith('ada', 0), clientWith('ada', 0), clientWith('bob', 0)];
  for (const client of [one, other, one, other]) {
    expect(unread.mayWiden(client)).toBe(true);
    client.wide += 1;
  }
  expect([unread.mayWiden(one), unread.mayWiden(ofBob)]).toEqual([false, true]);
  unread.leave(other);
  expect(unread.mayWiden(one)).toBe(true);
});
