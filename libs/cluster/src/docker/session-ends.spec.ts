import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { describeWhere, podmanLacks } from '@atoll/testing';
import { Installation, soon } from '../contract/cluster-under-test-fixture.js';
import type { PodRun } from '../objects.js';
import type { Shell, ShellRequest } from '../shell.js';
import { startPodmanCluster, type PodmanCluster } from './podman-cluster-fixture.js';

describeWhere(podmanLacks(), 'sessions in pods on Podman', () => {
  let cluster: PodmanCluster;
  let here: Installation;
  let pod: PodRun;
  beforeAll(async () => {
    cluster = await startPodmanCluster();
    here = new Installation(cluster);
    pod = await here.startRunning(here.programs.idle);
  });
  afterAll(async () => {
    await here?.leave();
    await cluster?.stop();
  });

  const terminal = { columns: 80, rows: 24, type: 'xterm' };
  const open = (script: string, request: Partial<ShellRequest> = {}): Promise<Shell> =>
    here.driver.openShell(
      pod.ref,
      { command: ['sh', '-c', script], terminal: null, env: new Map(), ...request },
      soon(),
    );
  const seen = async (shell: Shell) => {
    const [stdout, stderr, { code }] = await Promise.all([text(shell.stdout), text(shell.stderr), shell.exit]);
    return { stdout, stderr, code };
  };
  /** Three at once, which makes the engine lose more. */
  const often = (times: number, once: () => Promise<void>) =>
    Promise.all(
      [0, 1, 2].map(async () => {
        for (let time = 0; time < times; time += 1) await once();
      }),
    );

  it('a command that leaves most of its input unread loses none of its output', async () => {
    await often(6, async () => {
      const shell = await open('head -c 3; echo; seq 8; echo failed >&2; exit 3');
      shell.stdin.write(Buffer.alloc(3_000_000, 'y'));
      expect(await seen(shell)).toEqual({ stdout: 'yyy\n1\n2\n3\n4\n5\n6\n7\n8\n', stderr: 'failed\n', code: 3 });
    });
  });

  it('a terminal shows all of its output and nothing else where somebody types when its command ends', async () => {
    await often(5, async () => {
      const shell = await open('stty -echo; echo ready; seq 8; exit 3', { terminal });
      const end = seen(shell);
      while (!shell.stdin.destroyed && shell.stdin.write('x')) await delay(1);
      const lines = ['ready', '1', '2', '3', '4', '5', '6', '7', '8', ''];
      const { stdout, ...rest } = await end;
      // What was typed before the terminal stopped to show it.
      expect([stdout.replace(/^x*/, ''), rest]).toEqual([lines.join('\r\n'), { stderr: '', code: 3 }]);
    });
  });

  it.each([null, terminal])('a command does not find itself by pgrep -f or pkill -f; terminal: %j', async (on) => {
    const words = 'a  b\n"$(id)" \'c\'';
    const find = 'for d in /proc/[0-9]*; do [ "$d" = "/proc/$$" ] || ! grep -qs needle "$d/cmdline" || echo "$d"; done';
    const command = ['bash', '-c', `${find}; printf "<%s>" "$@"`, 'bash', words, ''];
    const shell = await open('', { command, terminal: on });
    expect(await seen(shell)).toEqual({
      stdout: `<${on ? words.replace('\n', '\r\n') : words}><>`,
      stderr: '',
      code: 0,
    });
  });

  it('a terminal’s keys reach the command that has it: Ctrl-C, and Ctrl-Z with a shell that has jobs', async () => {
    const shell = await open('', { command: null, terminal });
    let shown = '';
    shell.stdout.on('data', (data: Buffer) => (shown += data.toString()));
    const shows = async (pattern: RegExp) => {
      while (!pattern.test(shown)) await new Promise((resolve) => shell.stdout.once('data', resolve));
      shown = '';
    };
    shell.stdin.write('sh -c "echo rea\\dy 1; exec sleep 1000"\n');
    await shows(/ready 1\r\n/);
    shell.stdin.write('\u001a');
    await shows(/Stopped/);
    shell.stdin.write('kill -9 %1; sh -c "echo rea\\dy 2; exec sleep 1000"; echo code $?.\n');
    await shows(/ready 2\r\n/);
    shell.stdin.write('\u0003');
    shell.stdin.write('echo code $?.\n');
    await shows(/code 130\./);
    shell.stdin.write('exit 4\n');
    expect(await shell.exit).toEqual({ code: 4 });
  });
});
