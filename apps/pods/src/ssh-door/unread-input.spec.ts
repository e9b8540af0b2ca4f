import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { ServerChannel } from 'ssh2';
import { ChannelInput, UnreadInput, type CountedClient } from './unread-input.js';

class CountedFake implements CountedClient {
  bytes = 0;
  readonly room = Promise.withResolvers<void>();

  constructor(readonly userId: string) {}

  unreadBytes(): number {
    return this.bytes;
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

it('counts bytes until the pod has taken them, and more than its bytes for each small chunk', async () => {
  const channel = Object.assign(new PassThrough(), { incoming: { window: 0 } });
  const input = new ChannelInput(channel as unknown as ServerChannel);
  for (let at = 0; at < 1_000; at += 1) channel.push(Buffer.alloc(1));
  expect(input.bytes).toBeGreaterThan(100_000);
  const target = new PassThrough();
  channel.pipe(target);
  input.passTo(target);
  while (target.readableLength < 1_000) await nextTurn();
  expect([input.bytes, input.isOverrun]).toEqual([0, false]);
  channel.incoming.window = -1;
  expect(input.isOverrun).toBe(true);
});
