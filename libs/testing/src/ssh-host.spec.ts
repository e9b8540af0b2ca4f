import { createConnection } from 'node:net';
import { once } from 'node:events';
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
    const starter = spawnTypescript(new URL('./ssh-host-process-fixture.ts', import.meta.url));
    while (starter.lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    const port = Number(starter.lines[0]);
    expect(await answers(port)).toBe(true);
    starter.kill('SIGKILL');
    await starter.ended;
    while (await answers(port)) await new Promise((resolve) => setTimeout(resolve, 20));
  });
});
