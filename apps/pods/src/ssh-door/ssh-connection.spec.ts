import { EventEmitter } from 'node:events';
import { expect, it } from '@jest/globals';
import type { Connection } from 'ssh2';
import type { Admission, AdmissionControl } from '../log-ins/admission-control.js';
import { usualDoorLimits } from './door-limits.js';
import { SshConnection, type SshConnectionOptions } from './ssh-connection.js';
import { UnreadInput } from './unread-input.js';

/** As much as a connection of ssh2 has of its own. */
class FakeClient extends EventEmitter {
  readonly _protocol = { channelOpenConfirm: () => undefined };
}

const connectionOf = (client: FakeClient, more: Partial<SshConnectionOptions>) =>
  new SshConnection(client as unknown as Connection, {
    admissionControl: {} as AdmissionControl,
    limits: usualDoorLimits,
    socket: {} as SshConnectionOptions['socket'],
    unread: new UnreadInput({ all: 0, ofUser: 0 }),
    refusalOf: () => null,
    ...more,
  });

it('a log-in that breaks in the middle cuts its connection, and counts as no guess', async () => {
  const client = new FakeClient();
  const { promise: isCut, resolve: destroy } = Promise.withResolvers<void>();
  const socket = { destroy } as unknown as SshConnectionOptions['socket'];
  const connection = connectionOf(client, { socket });
  const reject = () => {
    throw new Error('no such connection');
  };
  client.emit('authentication', { method: 'password', reject });
  await isCut;
  expect([connection.isAdmitted(), connection.hasFailed]).toEqual([false, false]);
});

it('a key that could not be decided about is decided about when the same connection offers it again', async () => {
  const client = new FakeClient();
  let isDown = true;
  const admit = () => (isDown ? Promise.reject(new Error('the database is away')) : Promise.resolve({} as Admission));
  const connection = connectionOf(client, { admissionControl: { admit } as unknown as AdmissionControl });
  const answers: string[] = [];
  const offer = async () => {
    client.emit('authentication', {
      method: 'publickey',
      username: 'pod',
      key: { algo: 'ssh-ed25519', data: Buffer.from('key') },
      accept: () => answers.push('accepted'),
      reject: () => answers.push('refused'),
    });
    await connection.decided;
  };
  await offer();
  isDown = false;
  await offer();
  expect(answers).toEqual(['refused', 'accepted']);
});
