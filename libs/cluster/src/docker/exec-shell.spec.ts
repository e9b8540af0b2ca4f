import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import { ClusterError } from '../cluster-error.js';
import { ExecShell } from './exec-shell.js';

interface Given {
  readonly isTerminal?: boolean;
  /** null: Docker's. */
  readonly mark?: string | null;
  readonly code?: number;
}

function shellOf(
  end: (session: string) => Promise<void>,
  { isTerminal = true, mark = null, code = 0 }: Given = {},
): { shell: ExecShell; socket: Duplex; written: Buffer[] } {
  const written: Buffer[] = [];
  const write = (chunk: Buffer, _encoding: unknown, done: () => void) => {
    written.push(chunk);
    done();
  };
  const socket = new Duplex({ read: () => undefined, write });
  const nothing = () => Promise.resolve();
  const calls = { exit: () => Promise.resolve({ code }), resize: nothing, signal: nothing, end };
  return { shell: new ExecShell(socket, isTerminal, calls, mark), socket, written };
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

describe('an exec of Podman', () => {
  const complaint = 'Error: read unixpacket @->/proc/self/fd/12/attach: read: connection reset by peer\n';
  const mark = '\u001e0815\u001e';
  const frame = (code: 1 | 2, text: string) =>
    Buffer.concat([Buffer.from([code, 0, 0, 0, 0, 0, 0, text.length]), Buffer.from(text)]);

  /** What is seen of an exec whose stream is this. */
  async function seen(isTerminal: boolean, stream: (string | Buffer)[], code = 0) {
    const { shell, socket } = shellOf(() => Promise.resolve(), { isTerminal, mark: '0815', code });
    for (const data of stream) socket.push(data);
    socket.push(null);
    const [stdout, stderr, exit] = await Promise.all([text(shell.stdout), text(shell.stderr), shell.exit]);
    return { stdout, stderr, code: exit.code };
  }

  it('shows neither the mark behind its output nor what Podman adds', async () => {
    expect(await seen(true, ['4711\nhi\r\n', mark, complaint], 3)).toEqual({ stdout: 'hi\r\n', stderr: '', code: 3 });
    const frames = [frame(2, '4711\n'), frame(1, 'hi\n'), frame(2, `oh\n${mark}`)];
    expect(await seen(false, frames, 3)).toEqual({ stdout: 'hi\n', stderr: 'oh\n', code: 3 });
  });

  it('has a code that nobody knows where Podman may have dropped output, unless a signal ended it', async () => {
    expect(await seen(true, ['4711\nhalf of', complaint])).toEqual({ stdout: 'half of', stderr: '', code: null });
    const frames = [frame(2, '4711\n'), frame(1, 'half of'), frame(2, `${mark}${complaint}`)];
    expect(await seen(false, frames)).toEqual({ stdout: 'half of', stderr: '', code: null });
    expect(await seen(false, frames, 137)).toMatchObject({ code: 137 });
  });

  it.each([true, false])('takes no more input when its command has ended; with a terminal: %s', async (isTerminal) => {
    const { shell, socket, written } = shellOf(() => Promise.resolve(), { isTerminal, mark: '0815' });
    const ended = once(socket, 'finish');
    const closed = once(shell.stdin, 'close');
    socket.push(isTerminal ? `4711\nhi${mark}` : frame(2, `4711\n${mark}`));
    await closed;
    shell.stdin.write('too late', () => undefined);
    // On pipes the session's shell waits for the end of the input.
    if (!isTerminal) await ended;
    expect(written).toEqual([]);
    shell.disconnect();
    await shell.exit;
  });
});
