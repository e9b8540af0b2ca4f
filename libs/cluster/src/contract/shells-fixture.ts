import { expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { PodRun } from '../objects.js';
import type { ShellRequest } from '../shell.js';
import { codeOf, eventually, soon, type Installation } from './cluster-under-test-fixture.js';

const terminal = { columns: 100, rows: 30, type: 'xterm-256color' };

export function shellLaws(here: () => Installation): void {
  const open = (pod: PodRun, request: Partial<ShellRequest>) =>
    here().driver.openShell(pod.ref, { command: null, terminal: null, env: new Map(), ...request }, soon());
  const bash = (pod: PodRun, script: string, more: Partial<ShellRequest> = {}) =>
    open(pod, { command: ['bash', '-c', script], ...more });

  it('runs a command: stdout and stderr apart, its code, its input and its end', async () => {
    const pod = await here().startRunning(here().programs.idle);
    const shell = await bash(pod, 'cat; echo out; echo "$COLOUR" >&2; exit 7', {
      env: new Map([['COLOUR', 'blue and green']]),
    });
    shell.stdin.end('in\n');
    const [out, error, exit] = await Promise.all([text(shell.stdout), text(shell.stderr), shell.exit]);
    expect([out, error, exit]).toEqual(['in\nout\n', 'blue and green\n', { code: 7 }]);
    await here().remove(pod);
  });

  it('passes a command as it is, never through a shell, and says how a missing one ends', async () => {
    const pod = await here().startRunning(here().programs.idle);
    const shell = await open(pod, { command: ['echo', '$(id)', 'a  b', '; false', ''] });
    expect([await text(shell.stdout), await shell.exit]).toEqual(['$(id) a  b ; false \n', { code: 0 }]);
    const missing = await open(pod, { command: ['atoll-has-no-such-program'] });
    missing.stdout.resume();
    missing.stderr.resume();
    expect(await missing.exit).toEqual({ code: 127 });
    await here().remove(pod);
  });

  it('carries bytes of any value in both directions, many of them', async () => {
    const pod = await here().startRunning(here().programs.idle);
    const shell = await bash(pod, 'cat');
    const bytes = Buffer.from(Array.from({ length: 5_000_000 }, (_, index) => (index * 31 + (index >> 8)) & 255));
    shell.stdin.end(bytes);
    shell.stderr.resume();
    expect(bytes.equals(Buffer.concat(await shell.stdout.toArray()))).toBe(true);
    await here().remove(pod);
  });

  it('gives a terminal of the size asked for, and resizes it', async () => {
    const pod = await here().startRunning(here().programs.idle);
    const script = 'trap "stty size; exit" WINCH; stty size; echo "$TERM"; echo ready; while true; do sleep 0.1; done';
    const shell = await bash(pod, script, { terminal });
    expect(await until(shell.stdout, /ready\r\n/)).toBe('30 100\r\nxterm-256color\r\nready\r\n');
    await shell.resize({ columns: 61, rows: 17 });
    expect(await text(shell.stdout)).toBe('17 61\r\n');
    expect([await text(shell.stderr), await shell.exit]).toEqual(['', { code: 0 }]);
    await here().remove(pod);
  });

  it('logs in without a command', async () => {
    const pod = await here().startRunning(here().programs.idle);
    const shell = await open(pod, { terminal });
    shell.stdin.write('echo "I am $((40 + 2))"; exit 3\n');
    expect(await text(shell.stdout)).toContain('I am 42\r\n');
    expect(await shell.exit).toEqual({ code: 3 });
    await here().remove(pod);
  });

  it('sends signals to the process and what it started', async () => {
    const pod = await here().startRunning(here().programs.idle);
    const shell = await bash(
      pod,
      'trap "echo got INT; wait; exit 9" INT; (trap "echo child got INT; exit" INT; echo ready; while true; do sleep 0.1; done) & while true; do sleep 0.1; done',
    );
    expect(await until(shell.stdout, /ready/)).toBe('ready\n');
    await shell.signal('SIGINT');
    shell.stderr.resume();
    expect((await text(shell.stdout)).split('\n').sort()).toEqual(['', 'child got INT', 'got INT']);
    expect(await shell.exit).toEqual({ code: 9 });
    expect(await codeOf(shell.signal('SIG$(reboot)'))).toBe('invalid');
    await here().remove(pod);
  });

  it('ends the process with the session, also one that ignores HUP, and leaves what was detached', async () => {
    const pod = await here().startRunning(here().programs.idle);
    const named = async (name: string) => {
      const shell = await bash(
        pod,
        `for f in /proc/[0-9]*/environ; do tr "\\0" "\\n" < $f | grep -qx NAME=${name} && echo found; done 2>/dev/null; true`,
      );
      return (await text(shell.stdout)).includes('found');
    };
    const script =
      'setsid env -u X NAME=detached sleep 60 & NAME=nohup nohup sleep 60 >/dev/null 2>&1 & trap "" HUP; echo ready; while true; do sleep 0.2; done';
    const end = async (request: Partial<ShellRequest>, name: string) => {
      const shell = await bash(pod, script, { ...request, env: new Map([['NAME', name]]) });
      await until(shell.stdout, /ready/);
      expect(await named(name)).toBe(true);
      await shell.close();
      await eventually(async () => ((await named(name)) ? undefined : true));
      await shell.close();
    };
    await Promise.all([end({ terminal }, 'with-terminal'), end({ terminal: null }, 'with-pipes')]);
    expect([await named('detached'), await named('nohup')]).toEqual([true, true]);
    await here().remove(pod);
  });

  it('ends with the pod', async () => {
    const pod = await here().startRunning(here().programs.idle);
    const shell = await bash(pod, 'echo ready; sleep 60');
    await until(shell.stdout, /ready/);
    await here().driver.stopPod(pod.ref, 0, soon());
    shell.stdout.resume();
    shell.stderr.resume();
    expect([137, null]).toContain((await shell.exit).code);
    await here().remove(pod);
    expect(await codeOf(bash(pod, 'true'))).toBe('not_found');
  });

  it('reads no more than its reader takes', async () => {
    const pod = await here().startRunning(here().programs.idle);
    const [fast, slow] = [await bash(pod, 'cat /dev/zero'), await bash(pod, 'cat /dev/zero')];
    let read = 0;
    fast.stdout.on('data', (data: Buffer) => (read += data.length));
    const first = await once(slow.stdout, 'readable').then(() => slow.stdout.readableLength);
    await eventually(async () => (read > 50_000_000 ? true : undefined));
    // What was not taken waits in the pod: as much as one read holds is here.
    expect(slow.stdout.readableLength).toBeLessThan(first + 1_000_000);
    await Promise.all([fast.close(), slow.close()]);
    await here().remove(pod);
  });

  it('waits with its writer for a process that does not read', async () => {
    const pod = await here().startRunning(here().programs.idle);
    const shell = await bash(pod, 'echo ready; sleep 60');
    await until(shell.stdout, /ready/);
    let written = 0;
    const block = Buffer.alloc(65_536);
    const write = (): void => {
      while (!shell.stdin.destroyed && shell.stdin.write(block)) written += block.length;
      shell.stdin.once('drain', write);
    };
    write();
    let before = -1;
    while (before !== written) {
      before = written;
      await delay(500);
    }
    expect(written).toBeLessThan(20_000_000);
    await shell.close();
    await here().remove(pod);
  });

  it('has no shell where the pod is not there', async () => {
    const shell = here().driver.openShell(here().ref('pod'), { command: null, terminal: null, env: new Map() }, soon());
    expect(await codeOf(shell)).toBe('not_found');
  });
}

/** What was read until the pattern came. */
async function until(stream: Readable, pattern: RegExp): Promise<string> {
  let all = '';
  while (!pattern.test(all)) {
    const data = (stream.read() as Buffer | null)?.toString();
    if (data === undefined && stream.readableEnded)
      throw new Error(`The stream ended without ${String(pattern)}: ${all}`);
    if (data === undefined) await Promise.race([once(stream, 'readable'), once(stream, 'end')]);
    else all += data;
  }
  return all;
}
