import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { generateKeyPair } from '@atoll/ssh';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { AdmissionControl } from '../log-ins/admission-control.js';
import type { ConnectionRegistry } from '../log-ins/connection-registry.js';
import { SshDoor } from './ssh-door.js';

let door: SshDoor;
beforeAll(async () => {
  const nobody = { admissionControl: {} as AdmissionControl, registry: {} as ConnectionRegistry };
  const limits = { startups: 5, startupsOfNetwork: 3 };
  door = new SshDoor({ host: '127.0.0.1', port: 0, hostKey: generateKeyPair().privateKey, ...nobody, limits });
  await door.open();
});
afterAll(() => door.close());

/** A connection that does not log in, and whether the door has greeted it. */
async function unauthenticated(localAddress: string): Promise<{ socket: Socket; isIn: boolean }> {
  const socket = connect({ host: '127.0.0.1', port: door.port ?? 0, localAddress }).on('error', () => undefined);
  const isIn = await Promise.race([once(socket, 'data').then(() => true), once(socket, 'close').then(() => false)]);
  return { socket, isIn };
}

const gone = ({ socket }: { socket: Socket }): Promise<unknown> =>
  socket.closed ? Promise.resolve() : once(socket, 'close');

it('where there are too many unauthenticated connections, the oldest of the network that has most makes room for who comes from elsewhere', async () => {
  const many = [
    await unauthenticated('127.0.0.2'),
    await unauthenticated('127.0.0.2'),
    await unauthenticated('127.0.0.2'),
  ];
  const few = [await unauthenticated('127.0.0.3'), await unauthenticated('127.0.0.3')];
  const late = await unauthenticated('127.0.0.4');
  await gone(many[0]!);
  const others = [...many.slice(1), ...few, late];
  expect(others.map(({ isIn, socket }) => isIn && !socket.closed)).toEqual(others.map(() => true));
  others.forEach(({ socket }) => socket.destroy());
});

it('a network that has too many loses its oldest silent one, so that silence shuts nobody out, and who logs in stays', async () => {
  const speaking = await unauthenticated('127.0.0.5');
  speaking.socket.write('SSH-2.0-slow\r\n');
  // The door sends its key exchange once it has read that.
  await once(speaking.socket, 'data');
  const silent = [await unauthenticated('127.0.0.5'), await unauthenticated('127.0.0.5')];
  const late = [await unauthenticated('127.0.0.5'), await unauthenticated('127.0.0.5')];
  await Promise.all(silent.map(gone));
  expect([speaking, ...late].map(({ isIn, socket }) => isIn && !socket.closed)).toEqual([true, true, true]);
});
