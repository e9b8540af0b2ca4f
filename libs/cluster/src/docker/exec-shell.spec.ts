import { expect, it } from '@jest/globals';
import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { ClusterError } from '../cluster-error.js';
import { ExecShell } from './exec-shell.js';

function shellOf(end: (session: string) => Promise<void>): { shell: ExecShell; socket: Duplex } {
  const socket = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() });
  const nothing = () => Promise.resolve();
  const calls = { exit: () => Promise.resolve({ code: 0 }), resize: nothing, signal: nothing, end };
  return { shell: new ExecShell(socket, true, calls), socket };
}

it('ends a command that begins after its caller has left', async () => {
  const ended: string[] = [];
  const { shell, socket } = shellOf((session) => Promise.resolve(void ended.push(session)));
  await expect(shell.begin(AbortSignal.abort(new Error('left')))).rejects.toThrow('left');
  socket.push('4711\n');
  await turn();
  expect(ended).toEqual(['4711']);
  shell.disconnect();
  await shell.exit;
});

it('lets go of a command that begins after its caller has left, where the engine refuses to end it', async () => {
  const { shell, socket } = shellOf(() => Promise.reject(new ClusterError('not_found', 'The pod is not running.')));
  await expect(shell.begin(AbortSignal.abort(new Error('left')))).rejects.toThrow('left');
  socket.push('4711\n');
  // A rejection that nobody handles fails the spec, as it would end the process.
  await shell.exit;
  expect(socket.destroyed).toBe(true);
});
