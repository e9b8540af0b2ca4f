import { expect, it } from '@jest/globals';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { commandOfLine, type ShellRequest } from '../../shell.js';
import { SimulatedShell } from './simulated-shell.js';

const slice = {
  leaseId: '1',
  nodeName: 'node-01',
  gpuUuid: 'GPU-6d3c1b1e-0000-0000-0000-000000000001',
  board: 'A100-80GB',
  profile: '1g.10gb',
  slotStart: 2,
  instanceId: 7,
  instanceUuid: 'MIG-11111111-0000-0000-0000-000000000001',
  isSimulated: true,
};
const pod = { podName: 'train-abcde', image: 'docker.io/library/python:3.13', slices: [slice], readyMs: 0 };
const terminal = { columns: 100, rows: 30, type: 'xterm' };
const open = (request: Partial<ShellRequest> = {}) =>
  new SimulatedShell(pod, { command: null, terminal: null, env: new Map(), ...request });
const run = async (line: string, input = '') => {
  const shell = open({ command: commandOfLine(line) });
  shell.stdin.end(input);
  const [out, error, exit] = await Promise.all([text(shell.stdout), text(shell.stderr), shell.exit]);
  return [out, error, exit.code];
};

it('runs the command of a session: stdout and stderr apart, and its code', async () => {
  expect(await run('hostname; cat /no; exit 7')).toEqual(['train-abcde\n', 'cat: /no: No such file or directory\n', 7]);
  expect(await run('false && echo no || echo "$?"')).toEqual(['1\n', '', 0]);
  expect(await run('cat', 'in\n')).toEqual(['in\n', '', 0]);
  expect(await run('cd /etc && pwd && ls && cd ..; pwd')).toEqual(['/etc\nhostname\nos-release\n/\n', '', 0]);
});

it('passes a command that is no line on as it is', async () => {
  const shell = open({ command: ['echo', '$(id)', 'a  b', '; false', ''] });
  expect([await text(shell.stdout), await shell.exit]).toEqual(['$(id) a  b ; false \n', { code: 0 }]);
});

it('shows the slices of the pod by nvidia-smi, and that no figure is measured', async () => {
  expect(await run('nvidia-smi -L')).toEqual([
    `GPU 0: A100-80GB (UUID: ${slice.gpuUuid})\n  MIG 1g.10gb          Device  0: (UUID: ${slice.instanceUuid})\n`,
    '',
    0,
  ]);
  const [table] = await run('nvidia-smi');
  expect(table).toMatch(/simulated: no figure is measured[\s\S]*A100-80GB +1g\.10gb +0MiB \/ 10240MiB/);
});

it.each(['mps-4', 'time-8'])('shows a share that is no device of its own (%s) as its GPU', async (profile) => {
  const shared = { ...pod, slices: [{ ...slice, profile, slotStart: 0, instanceUuid: null }] };
  const shell = new SimulatedShell(shared, { command: commandOfLine('nvidia-smi -L'), terminal: null, env: new Map() });
  shell.stdin.end();
  expect(await text(shell.stdout)).toBe(`GPU 0: A100-80GB (UUID: ${slice.gpuUuid})\n`);
});

it('says of what it does not have that it is simulated', async () => {
  expect(await run('python3 train.py')).toEqual([
    '',
    expect.stringMatching(/python3: command not found .*simulated/),
    127,
  ]);
  expect(await run('ls | wc')).toEqual(['', expect.stringMatching(/simulated: it has no pipes/), 2]);
});

it('runs no command that its variables make too long', async () => {
  const shell = open({
    command: commandOfLine(`echo ${'$LONG'.repeat(600)}; echo $?`),
    env: new Map([['LONG', 'x'.repeat(256)]]),
  });
  shell.stdin.end();
  expect([await text(shell.stdout), await text(shell.stderr), await shell.exit]).toEqual([
    '',
    'sh: the command is too long\n',
    { code: 126 },
  ]);
});

it('is a terminal: it echoes, edits lines, interrupts what runs, and ends at exit with its code', async () => {
  const shell = open({ terminal });
  const shown = reader(shell.stdout);
  await shown(/# $/);
  shell.stdin.write('echox\u007f "I am here"\r');
  expect(await shown(/\n.*# $/)).toMatch(/I am here\r\n.*# $/);
  shell.stdin.write('sleep infinity\r');
  await shown(/infinity\r\n/);
  shell.stdin.write('\u0003');
  expect(await shown(/# $/)).toBe('^C\r\nroot@train-abcde:/workspace# ');
  await shell.resize({ columns: 61, rows: 17 });
  shell.stdin.write('stty size; exit 3\r');
  expect(await shown(/17 61/)).toContain('17 61\r\n');
  expect([await text(shell.stderr), await shell.exit]).toEqual(['', { code: 3 }]);
});

it('reads a script from its input, and ends with it', async () => {
  const shell = open();
  shell.stdin.end('echo one\necho "two"');
  expect([await text(shell.stdout), await shell.exit]).toEqual(['one\ntwo\n', { code: 0 }]);
});

it.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
])('ends a command at %s', async (signal, code) => {
  const shell = open({ command: ['sleep', 'infinity'] });
  await shell.signal(signal);
  expect(await shell.exit).toEqual({ code });
  await expect(shell.signal('SIG$(reboot)')).rejects.toMatchObject({ code: 'invalid' });
});

it('ends with its session and with its pod, also while nobody reads it', async () => {
  const [closed, killed] = [open({ command: ['cat'] }), open({ command: ['cat'] })];
  for (const { stdin } of [closed, killed]) stdin.write(Buffer.alloc(1_000_000));
  await closed.close();
  killed.kill();
  expect([await closed.exit, await killed.exit]).toEqual([{ code: 129 }, { code: 137 }]);
});

it('takes no more from its writer than its reader takes, and drops what a terminal has no room for', async () => {
  const piped = open({ command: ['cat'] });
  const block = Buffer.alloc(65_536);
  let written = 0;
  while (piped.stdin.write(block)) written += block.length;
  await once(piped.stdout, 'readable');
  for (let before = -1; before !== piped.stdout.readableLength;) {
    before = piped.stdout.readableLength;
    await new Promise(setImmediate);
  }
  expect(piped.stdout.readableLength).toBeLessThan(1_000_000);
  expect(written).toBeLessThan(10_000_000);
  await piped.close();
  const typed = open({ terminal });
  typed.stdin.write('x'.repeat(1_000_000));
  typed.stdin.end('\r');
  const shown = await text(typed.stdout);
  expect(shown.length).toBeLessThan(20_000);
});

/** Reads on until the pattern comes, and gives what came since the last time. */
function reader(stream: Readable): (pattern: RegExp) => Promise<string> {
  let all = '';
  stream.on('data', (data: Buffer) => (all += data.toString()));
  return async (pattern) => {
    while (!pattern.test(all)) await once(stream, 'data');
    const found = all;
    all = '';
    return found;
  };
}
