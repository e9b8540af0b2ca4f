import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { createApiKey } from '@atoll/api-keys';
import { freePort, keepOutput, makeServerFolder, ownPorts, timeoutFactor } from '@atoll/testing';

export type Topology = 'one-process' | 'services';

const entryPoints: Record<Topology, string> = {
  'one-process': 'dist/apps/platform/src/main.js',
  services: 'dist/tools/start-services.js',
};

const startTimeoutMs = 180_000 * timeoutFactor;

/** A platform started as its user starts it, on a data folder of its own. */
export interface RunningPlatform {
  url: string;
  adminKey: string;
  process: ChildProcess;
  /** Everything it has printed so far. */
  output(): string;
  /** Asks it to stop and waits. Throws unless it ends with code 0. */
  stop(): Promise<void>;
}

/** A gateway can be ready before the services behind it: a call tells, by its answer to a key or to none. */
async function untilReady(platform: RunningPlatform): Promise<void> {
  const deadline = Date.now() + startTimeoutMs;
  while (platform.process.exitCode === null && Date.now() < deadline) {
    // Only from then on does it end by a signal as it should; and no call is counted before.
    if (!platform.output().includes('Atoll is ready')) {
      await delay(50);
      continue;
    }
    const headers = { authorization: `Bearer ${platform.adminKey || createApiKey()}` };
    const answer = await fetch(`${platform.url}/api/user/profile`, { headers }).catch(() => null);
    const isAnswered = platform.adminKey ? answer?.ok : answer?.status === 401 && platform.output().includes('Try it');
    if (isAnswered) return;
    await delay(50);
  }
  // The end first: it says what is waited for, and reports are cut.
  throw new Error(
    `The platform did not become ready. Newest line first:\n${platform.output().trimEnd().split('\n').toReversed().join('\n')}`,
  );
}

/** Platforms of several workers run side by side on one host, and each picks external ports at random. */
const besideOthers = () => ({ ATOLL_LIMITS: 'off', ATOLL_SSH_PORT: '0', ATOLL_EXPOSED_PORTS: ownPorts() });

/**
 * Starts the built platform on a free port of 127.0.0.1, or on the port and address of `env`, from the project's root.
 * `env` adds to the environment or overrides it; with `ownGroup` signals can be sent to all of its process group, as a
 * terminal does.
 */
export async function startPlatform(
  topology: Topology,
  env: Record<string, string> = {},
  options: { ownGroup?: boolean } = {},
): Promise<RunningPlatform> {
  const dataDir = env.ATOLL_DATA_DIR ?? makeServerFolder();
  const port = env.PORT ?? (await freePort());
  const adminKey = env.ATOLL_ADMIN_KEY ?? createApiKey();
  const child = spawn(process.execPath, [entryPoints[topology]], {
    env: {
      ...process.env,
      PORT: String(port),
      ATOLL_DATA_DIR: dataDir,
      ATOLL_ADMIN_KEY: adminKey,
      ...besideOthers(),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: options.ownGroup ?? false,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      keepOutput(child.pid, chunk);
    });
  }
  const platform: RunningPlatform = {
    url: `http://${env.HOST ?? '127.0.0.1'}:${port}`,
    adminKey,
    process: child,
    output: () => output,
    stop: async () => {
      const ended = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null;
      child.kill('SIGTERM');
      await ended;
      if (!env.ATOLL_DATA_DIR) rmSync(dataDir, { recursive: true, force: true });
      if (child.exitCode !== 0)
        throw new Error(`The platform ended with code ${child.exitCode}, signal ${child.signalCode}:\n${output}`);
    },
  };
  try {
    await untilReady(platform);
  } catch (error) {
    await platform.stop().catch(() => undefined);
    throw error;
  }
  return platform;
}
