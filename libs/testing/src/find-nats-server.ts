import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const name = 'nats-server';
const attempts = 5;

/**
 * Path of a nats-server: from PATH, or the one that an earlier run fetched into `.tools`, or, on Debian and Ubuntu,
 * fetched there now from the system's own package archive, with nothing installed and as any user. Elsewhere throws
 * and says what to install. Several processes may do this at once.
 */
export async function findNatsServer(): Promise<string> {
  const tools = join(await projectRoot(), '.tools');
  const folders = [...(process.env['PATH'] ?? '').split(delimiter).filter(Boolean), tools];
  for (const folder of folders) {
    const path = join(folder, name);
    if (await isExecutable(path)) return path;
  }
  return fetchFromArchive(tools);
}

async function fetchFromArchive(tools: string): Promise<string> {
  await mkdir(tools, { recursive: true });
  const folder = await mkdtemp(join(tools, 'fetch-'));
  try {
    await download(folder);
    const [archive] = (await readdir(folder)).filter((file) => file.endsWith('.deb'));
    if (!archive) throw new Error('the archive has no such package');
    await run('dpkg', ['-x', archive, 'unpacked'], { cwd: folder });
    const target = join(tools, name);
    await rename(join(folder, 'unpacked', 'usr', 'sbin', name), target);
    return target;
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim() : String(error);
    throw new Error(
      `A nats-server is needed: install it (https://docs.nats.io/running-a-nats-service/introduction/installation) so that it is on the PATH. Fetching it failed: ${reason}`,
      {
        cause: error,
      },
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** With the system's package lists first; where there are none, with lists of our own. */
async function download(folder: string): Promise<void> {
  const asRoot = ['-o', 'APT::Sandbox::User=root'];
  const fetch = (options: string[]): Promise<unknown> =>
    run('apt-get', [...asRoot, ...options, 'download', name], { cwd: folder });
  if (await succeeds(() => fetch([]))) return;
  const lists = join(folder, 'lists');
  await mkdir(join(lists, 'partial'), { recursive: true });
  const own = ['-o', `Dir::State::lists=${lists}`, '-o', `Dir::Cache=${folder}`];
  for (let attempt = 1; ; attempt += 1) {
    try {
      await run('apt-get', [...asRoot, ...own, 'update'], { cwd: folder });
      await fetch(own);
      return;
    } catch (error) {
      if (attempt === attempts || isMissingCommand(error)) throw error;
      await delay(1000 * attempt);
    }
  }
}

async function succeeds(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch {
    return false;
  }
}

function isMissingCommand(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

async function isExecutable(path: string): Promise<boolean> {
  return succeeds(() => access(path, constants.X_OK));
}

/** The folder of the nearest package.json above this file, be it the source or what was built from it. */
export async function projectRoot(): Promise<string> {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!(await succeeds(() => access(join(folder, 'package.json'))))) {
    if (folder === dirname(folder)) throw new Error('This file lies in no project.');
    folder = dirname(folder);
  }
  return folder;
}
