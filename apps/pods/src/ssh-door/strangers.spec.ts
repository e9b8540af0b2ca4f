import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { generateKeyPair } from '@atoll/ssh';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Doorkeeper } from './doorkeeper.js';
import type { GuestBook } from './guest-book.js';
import { SshDoor } from './ssh-door.js';

let door: SshDoor;
beforeAll(async () => {
  const nobody = { doorkeeper: {} as Doorkeeper, guests: {} as GuestBook };
  const limits = { strangers: 5, strangersOfNetwork: 3 };
  door = new SshDoor({ host: '127.0.0.1', port: 0, hostKey: generateKeyPair().privateKey, ...nobody, limits });
  await door.open();
});
afterAll(() => door.close());

/** A connection that does not log in, and whether the door has greeted it. */
async function stranger(localAddress: string): Promise<{ socket: Socket; isIn: boolean }> {
  const socket = connect({ host: '127.0.0.1', port: door.port ?? 0, localAddress }).on('error', () => undefined);
  const isIn = await Promise.race([once(socket, 'data').then(() => true), once(socket, 'close').then(() => false)]);
  return { socket, isIn };
}

it('where there are too many strangers, the oldest of the network that has most makes room for who comes from elsewhere', async () => {
  const many = [await stranger('127.0.0.2'), await stranger('127.0.0.2'), await stranger('127.0.0.2')];
  expect((await stranger('127.0.0.2')).isIn).toBe(false);
  const few = [await stranger('127.0.0.3'), await stranger('127.0.0.3')];
  const gone = once(many[0]!.socket, 'close');
  const late = await stranger('127.0.0.4');
  await gone;
  const others = [...many.slice(1), ...few, late];
  expect(others.map(({ isIn, socket }) => isIn && !socket.closed)).toEqual(others.map(() => true));
});
