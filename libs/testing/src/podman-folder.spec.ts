import { expect, it } from '@jest/globals';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { cachePath } from './machine.js';
import { describeWhere } from './describe-where.js';
import { createPodmanFolder, removePodmanFolder } from './podman-folder.js';
import { podmanImage, podmanLacks, startPodman } from './podman.js';

/** The command lines of processes that name this folder, but for this one. */
function commandsIn(folder: string): string[] {
  const commands = readdirSync('/proc').flatMap((name) => {
    try {
      return Number(name) > 0 && Number(name) !== process.pid
        ? [readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')]
        : [];
    } catch {
      return [];
    }
  });
  return commands.filter((command) => command.includes(folder));
}

/** Resolves also where the service is killed before it answers. */
function post(socketPath: string, path: string, body?: object): Promise<void> {
  return new Promise((resolve) => {
    const asked = request(
      { socketPath, path, method: 'POST', headers: { 'Content-Type': 'application/json' } },
      (answer) => {
        answer.resume().once('end', resolve);
      },
    );
    asked.once('error', () => resolve()).end(body && JSON.stringify(body));
  });
}

const here = (name: string) => JSON.stringify(new URL(name, import.meta.url).href);

/**
 * A run of Jest whose worker has a container that runs, and is killed; then the run comes to its end, or a signal ends
 * it.
 */
const runWithKilledWorker = (ending: string) => `
  import { spawnSync } from 'node:child_process';
  import setup from ${here('jest-run-setup.ts')};
  import teardown from ${here('jest-run-teardown.ts')};
  setup();
  const { signal, stderr } = spawnSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', process.env.WORKER], { encoding: 'utf8' });
  if (signal !== 'SIGKILL') throw new Error(stderr);
  ${ending}
`;

const worker = `
  import { execFileSync } from 'node:child_process';
  import { createPodmanFolder } from ${here('podman-folder.ts')};
  const { env, podman: [program, ...flags] } = createPodmanFolder(process.env.IMAGES, {});
  execFileSync(program, [...flags, 'run', '--detach', '--network=none', '${podmanImage}', 'sleep', 'infinity'], { env });
  process.kill(process.pid, 'SIGKILL');
`;

describeWhere(podmanLacks(), 'the Podman of a spec', () => {
  it('has addresses for networks, also where those are the ones of Podman’s default network', () => {
    const folder = createPodmanFolder(cachePath('base-1.images'), {}, 88);
    try {
      const [program, ...flags] = folder.podman;
      execFileSync(program, [...flags, 'network', 'create', 'one'], { env: folder.env });
    } finally {
      removePodmanFolder(folder);
    }
  });

  it('takes with it the containers whose start it cuts short', async () => {
    const podman = await startPodman();
    const folder = dirname(podman.root);
    const body = { Image: podmanImage, Entrypoint: ['sleep', 'infinity'], HostConfig: { NetworkMode: 'none' } };
    const starts: Promise<void>[] = [];
    let isStarting = false;
    // A machine that is busy may be at the look only when all four have started: then there are four more.
    for (let round = 1; !isStarting; round += 1) {
      const names = [1, 2, 3, 4].map((number) => `container-${round}-${number}`);
      for (const name of names) await post(podman.socketPath, `/v1.41/containers/create?name=${name}`, body);
      starts.push(...names.map((name) => post(podman.socketPath, `/v1.41/containers/${name}/start`)));
      let haveStarted = false;
      void Promise.all(starts).then(() => (haveStarted = true));
      // Podman keeps that a container is there only after its runtime has created it.
      for (; !isStarting && !haveStarted; await delay(1))
        isStarting = commandsIn(folder).some((command) => /runc .*create/.test(command));
    }
    await podman.stop();
    await Promise.all(starts);
    expect(commandsIn(folder)).toEqual([]);
  });

  it.each([
    ['comes to its end', 'teardown();', [0, null]],
    ['is interrupted', `setInterval(() => undefined, 1000); process.kill(process.pid, 'SIGINT');`, [null, 'SIGINT']],
  ] as const)('is gone with its containers, where a worker was killed, when the run %s', async (_, ending, outcome) => {
    const folder = mkdtempSync(join(tmpdir(), 'atoll-killed-'));
    const more = {
      NODE_OPTIONS: '',
      ATOLL_TEST_RUN_DIR: '',
      TMPDIR: folder,
      WORKER: worker,
      IMAGES: cachePath('base-1.images'),
    };
    const words = ['--no-warnings', '--input-type=module', '-e', runWithKilledWorker(ending)];
    const run = spawn(process.execPath, words, { env: { ...process.env, ...more }, stdio: 'inherit' });
    expect(await once(run, 'exit')).toEqual(outcome);
    expect(commandsIn(folder)).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
    rmSync(folder, { recursive: true });
  });
});
