import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { startPlatform, type RunningPlatform, type Topology } from '../running-platform.js';

export interface DemoPlatform {
  platform: RunningPlatform;
  /** Keys of the owners, by the names of their teams. */
  keys: Record<string, string>;
}

/** A platform of its own, filled by the demo command as its user runs it. */
export async function startDemo(): Promise<DemoPlatform> {
  const platform = await startPlatform((process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology);
  const child = spawn(process.execPath, ['dist/apps/platform/src/demo.js', platform.url], {
    env: { ...process.env, ATOLL_KEY: platform.adminKey },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await once(child, 'close');
  const keys = Object.fromEntries(
    [...output.matchAll(/^ {2}(\S.*?) {2,}(atl_\w+)$/gm)].map(([, team = '', key = '']) => [team, key]),
  );
  if (child.exitCode !== 0 || Object.keys(keys).length === 0) {
    await platform.stop();
    throw new Error(`The demo was not loaded:\n${output}`);
  }
  return { platform, keys };
}
