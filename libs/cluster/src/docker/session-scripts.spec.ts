import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { sessionExec } from './session-scripts.js';

const mark = '\u001e0815\u001e';

/** Runs its words with a stderr that nobody reads before a line comes on file descriptor 3. Says when they are over. */
const unread = [
  '/bin/sh',
  '-c',
  'exec 4>&1; { "$@" 2>&1 >&4 3<&- 4>&-; echo over >&4; } | { read -r _ <&3; cat >&2; }',
  'sh',
];

/**
 * Runs what an exec on Podman runs, in this shell, on this machine. SHLVL keeps bash from reading the files of
 * a log-in, as it does where its input is a socket.
 */
function run(shell: string, command: readonly string[], given = process.env, within: string[] = []) {
  const { Cmd, Env } = sessionExec({ command, terminal: null, env: new Map() }, 'podman', '0815');
  const variables = Env.map((variable) => /^(\w+)=(.*)$/s.exec(variable)!.slice(1));
  const env = { ...given, SHLVL: '2', ...Object.fromEntries(variables) };
  const [program = '', ...words] = [...within, `/bin/${shell}`, ...Cmd.slice(1)];
  const child = spawn(program, words, { env, stdio: ['pipe', 'pipe', 'pipe', 'pipe'], detached: true });
  const closed = once(child, 'close');
  const inputErrors: Error[] = [];
  child.stdin.on('error', (error) => inputErrors.push(error));
  const ended = async () => {
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
    return { code, stdout, stderr, inputErrors };
  };
  return { child, ended };
}

describe.each(['sh', 'bash'])('a session in %s', (shell) => {
  it('begins, runs its command as it is and keeps its code, and marks the end', async () => {
    const words = ['$(id)', 'a  b', '', "it's", 'two\nlines', '"*"', '\\'];
    const { child, ended } = run(shell, ['sh', '-c', 'cat; printf "<%s>" "$@"; echo oh >&2; exit 7', 'sh', ...words]);
    child.stdin.end('in\n');
    expect(await ended()).toMatchObject({
      code: 7,
      stdout: `in\n${words.map((word) => `<${word}>`).join('')}`,
      stderr: `${child.pid}\noh\n${mark}`,
    });
  });

  it('keeps its own variables from its command', async () => {
    const { child, ended } = run(shell, ['env']);
    child.stdin.end();
    const { stdout } = await ended();
    expect([stdout.includes('PATH='), stdout.includes('ATOLL_SESSION')]).toEqual([true, false]);
  });

  it('ends with the code of a signal that ends the command, and says no word', async () => {
    const { child, ended } = run(shell, ['sh', '-c', 'kill -SEGV $$']);
    child.stdin.end();
    expect(await ended()).toMatchObject({ code: 139, stdout: '', stderr: `${child.pid}\n${mark}` });
  });

  it('leaves its end to the command, whatever signals it gets', async () => {
    // RFC 4254, 6.10, but for KILL, which nothing catches.
    const signals = ['ABRT', 'ALRM', 'FPE', 'HUP', 'ILL', 'INT', 'PIPE', 'QUIT', 'SEGV', 'TERM', 'USR1', 'USR2'];
    const hup = constants.signals.SIGHUP;
    const others = signals.map((name) => constants.signals[`SIG${name}` as NodeJS.Signals]).filter((n) => n !== hup);
    const script = `trap "echo hung up; exit 5" HUP; trap "" ${others.join(' ')}; echo ready; while true; do :; done`;
    const { child, ended } = run(shell, ['sh', '-c', script]);
    child.stdin.end();
    await once(child.stdout, 'readable');
    for (const signal of [...others, hup]) process.kill(-child.pid!, signal);
    expect(await ended()).toMatchObject({
      code: 5,
      stdout: 'ready\nhung up\n',
      stderr: `${child.pid}\n${mark}`,
    });
  });

  it('takes the input that its command left unread, and needs neither cat nor sleep for it', async () => {
    const { child, ended } = run(shell, ['/bin/sh', '-c', 'exit 5'], { PATH: '/nowhere' });
    child.stdin.end('y\n'.repeat(250_000));
    expect(await ended()).toEqual({ code: 5, stdout: '', stderr: `${child.pid}\n${mark}`, inputErrors: [] });
  });

  it('ends when nobody can read its output any more', async () => {
    const { child } = run(shell, ['sh', '-c', 'read -r _; exit 5']);
    child.stderr.destroy();
    child.stdin.end('\n');
    await once(child, 'exit');
  });

  describe('whose command leaves its inputs and outputs in non-blocking mode', () => {
    let folder: string;
    let env: NodeJS.ProcessEnv;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'atoll-sleep-'));
      const sleep = '#!/bin/sh\necho slept\nexec /bin/sleep "$@"\n';
      await writeFile(join(folder, 'sleep'), sleep, { mode: 0o755 });
      env = { PATH: `${folder}:${process.env.PATH}` };
    });
    afterAll(() => rm(folder, { recursive: true }));

    /** Ends by a signal: Node.js would put the mode back. */
    const nonBlocking = (stream: 0 | 2, script = '') => [
      process.execPath,
      '-e',
      `new net.Socket({ fd: ${stream} }); ${script}; process.kill(process.pid, 'SIGKILL')`,
    ];
    /** The session has called `sleep`, or is over. */
    const untilSeen = ({ stdout }: ReturnType<typeof run>['child']) =>
      Promise.race([once(stdout, 'readable'), once(stdout, 'close')]);

    it('marks its end behind output that waits for its reader', async () => {
      const fill = 'try { for (;;) fs.writeSync(2, "x"); } catch {}';
      const { child, ended } = run(shell, nonBlocking(2, fill), env, unread);
      child.stdin.end();
      await untilSeen(child);
      (child.stdio[3] as Writable).end('read\n');
      expect((await ended()).stderr.replace(/x+/, 'x')).toMatch(new RegExp(`^\\d+\nx${mark}$`));
    });

    it('takes the input that comes later', async () => {
      const { child, ended } = run(shell, nonBlocking(0), env);
      await untilSeen(child);
      child.stdin.end('y'.repeat(1_000_000));
      expect(await ended()).toMatchObject({ code: 137, inputErrors: [] });
    });
  });
});
