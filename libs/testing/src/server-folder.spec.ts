import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeServerFolder, removeAbandonedServerFolders } from './server-folder.js';

let parent: string;
beforeAll(() => {
  parent = mkdtempSync(join(tmpdir(), 'atoll-folders-'));
});
afterAll(() => rmSync(parent, { recursive: true }));

/** The id of a process that has ended. */
const ended = () => spawnSync(process.execPath, ['-e', '']).pid;

/** A process in the place of a server, which has the data folder on its command line where it is the folder's own. */
async function server(folder: string, isItsOwn: boolean) {
  const data = join(folder, 'postgres', 'postgres');
  mkdirSync(data, { recursive: true });
  const args = ['-e', 'console.log(1); setInterval(() => undefined, 1000)', ...(isItsOwn ? [data] : [])];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  // A process that has just begun has no command line yet.
  await once(child.stdout, 'data');
  writeFileSync(join(data, 'postmaster.pid'), `${child.pid}\n${data}\n`);
  return child;
}

it('removes what a process that has ended left, and ends the server there; what lives keeps its folder', async () => {
  const [mine, left] = [makeServerFolder(process.pid, parent), makeServerFolder(ended(), parent)];
  const child = await server(left, true);
  const exit = once(child, 'exit');
  removeAbandonedServerFolders([parent]);
  expect(await exit).toEqual([null, 'SIGQUIT']);
  expect([existsSync(left), existsSync(mine)]).toEqual([false, true]);
  rmSync(mine, { recursive: true });
});

it.each(process.platform === 'linux' ? ['another process'] : [])(
  'does not end %s that got the id of the server',
  async () => {
    const child = await server(makeServerFolder(ended(), parent), false);
    try {
      removeAbandonedServerFolders([parent]);
      expect(readdirSync(parent)).toEqual([]);
      expect(child.kill(0)).toBe(true);
    } finally {
      const exit = once(child, 'exit');
      child.kill('SIGKILL');
      expect(await exit).toEqual([null, 'SIGKILL']);
    }
  },
);
