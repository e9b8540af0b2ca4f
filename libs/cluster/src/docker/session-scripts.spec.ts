import { expect, it } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { sessionCommand } from './session-scripts.js';

/** Runs what an exec on Podman runs, in this shell, on this machine. */
function run(shell: string, command: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  const [, ...words] = sessionCommand({ command, terminal: null, env: new Map() }, 'podman', '0815');
  const child = spawn(`/bin/${shell}`, words, { env, stdio: 'pipe', detached: true });
  child.stdin.on('error', () => undefined);
  const closed = once(child, 'close');
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  return { child, ended: async () => ({ code: await closed, output: await output }) };
}

it.each(['sh', 'bash'])(
  'a session begins, runs its command as it is and keeps its code, and marks the end: %s',
  async (shell) => {
    const { child, ended } = run(shell, ['sh', '-c', 'cat; echo "$1" "$0"; echo oh >&2; exit 7', '$(id)', 'a  b']);
    child.stdin.end('in\n');
    expect(await ended()).toEqual({
      code: [7, null],
      output: ['in\na  b $(id)\n', `${child.pid}\noh\n\u001e0815\u001e`],
    });
  },
);

it.each(['sh', 'bash'])('a signal that ends the command makes the code, and no word: %s', async (shell) => {
  const { child, ended } = run(shell, ['sh', '-c', 'kill -SEGV $$']);
  child.stdin.end();
  expect(await ended()).toEqual({ code: [139, null], output: ['', `${child.pid}\n\u001e0815\u001e`] });
});

it.each(['sh', 'bash'])('signals to the session leave its end to the command: %s', async (shell) => {
  const script = 'trap "echo hung up; exit 5" HUP; trap "" TERM INT; echo ready; while true; do :; done';
  const { child, ended } = run(shell, ['sh', '-c', script]);
  child.stdin.end();
  await once(child.stdout, 'readable');
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.kill(-child.pid!, signal);
  expect(await ended()).toEqual({
    code: [5, null],
    output: ['ready\nhung up\n', `${child.pid}\n\u001e0815\u001e`],
  });
});

it('a session needs neither cat nor sleep', async () => {
  const { child, ended } = run('sh', ['/bin/sh', '-c', 'exit 5'], { PATH: '/nowhere' });
  expect(await ended()).toMatchObject({ code: [5, null], output: ['', `${child.pid}\n\u001e0815\u001e`] });
});
