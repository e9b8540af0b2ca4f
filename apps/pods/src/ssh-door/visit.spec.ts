import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import { expect, it } from '@jest/globals';
import type { Connection } from 'ssh2';
import type { Doorkeeper } from './doorkeeper.js';
import { FairTurns } from './fair-turns.js';
import { usualLimits } from './limits.js';
import { Visit } from './visit.js';

it('a log-in that breaks in the middle cuts its connection, and counts as no guess', async () => {
  const client = new EventEmitter();
  const { promise: isCut, resolve: destroy } = Promise.withResolvers<void>();
  const socket = { destroy } as unknown as Socket;
  const options = {
    doorkeeper: {} as Doorkeeper,
    limits: usualLimits,
    socket,
    turns: new FairTurns(),
    refusalOf: () => null,
  };
  const visit = new Visit(client as unknown as Connection, options);
  const reject = () => {
    throw new Error('no such connection');
  };
  client.emit('authentication', { method: 'password', reject });
  await isCut;
  expect([visit.isAdmitted(), visit.hasFailed]).toEqual([false, false]);
});
