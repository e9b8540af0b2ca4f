import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { describeWhere } from './describe-where.js';
import { hostsLack } from './machine.js';
import { spawnTypescript } from './spawn-typescript.js';

const answers = async (port: number): Promise<boolean> => {
  const socket = createConnection(port, '127.0.0.1');
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
};

describeWhere(hostsLack(), 'a host', () => {
  it('ends with the process that started it, also where that is killed', async () => {
    // What its folder leaves there goes with it.
    const folder = (process.env.TMPDIR = mkdtempSync(join(tmpdir(), 'atoll-host-spec-')));
    const starter = spawnTypescript(new URL('./ssh-host-process-fixture.ts', import.meta.url));
    let hasEnded = false;
    void starter.ended.then(() => (hasEnded = true));
    try {
      while (starter.lines.length === 0 && !hasEnded) await delay(20);
      const port = Number(starter.lines[0]);
      expect(await answers(port)).toBe(true);
      starter.kill('SIGKILL');
      await starter.ended;
      while (await answers(port)) await delay(20);
    } finally {
      starter.kill('SIGKILL');
      rmSync(folder, { recursive: true });
    }
  });
});
