import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { startNats, type NatsServer } from './nats-server.js';
import { isAlive, removeAbandonedServerFolders } from './server-folder.js';
import { spawnTypescript } from './spawn-typescript.js';

describe('a nats-server for specs', () => {
  let server: NatsServer;
  beforeAll(async () => {
    server = await startNats({ configuration: 'max_payload: 65536' });
  });
  afterAll(() => server.stop());

  it('listens on loopback with the given configuration', async () => {
    const connection = await connect({ servers: server.url });
    expect(connection.info).toMatchObject({ host: '127.0.0.1', jetstream: true, max_payload: 65_536 });
    await connection.close();
  });

  it('keeps its port and its streams through a crash', async () => {
    const before = await connect({ servers: server.url, reconnect: false });
    await (await jetstreamManager(before)).streams.add({ name: 'kept', subjects: ['kept.>'] });
    const { pid } = server;
    await server.kill();
    await before.closed();
    await server.restart();
    expect(server.pid).not.toBe(pid);
    const after = await connect({ servers: server.url });
    expect(await (await jetstreamManager(after)).streams.names().next()).toEqual(['kept']);
    await after.close();
  });

  it('answers nothing while paused, and then everything', async () => {
    const connection = await connect({ servers: server.url });
    await server.pause();
    const flushed = connection.flush().then(() => 'answered');
    expect(await Promise.race([flushed, delay(100, 'silent')])).toBe('silent');
    server.resume();
    expect(await flushed).toBe('answered');
    await connection.close();
  });

  it('is ended by the next run where its process was killed outright', async () => {
    const { lines, kill, ended } = spawnTypescript(new URL('./nats-process-fixture.ts', import.meta.url));
    while (lines.length === 0) await delay(10);
    const pid = Number(lines[0]);
    kill('SIGKILL');
    await ended;
    expect(isAlive(pid)).toBe(true);
    removeAbandonedServerFolders();
    while (isAlive(pid)) await delay(10);
  });

  it('is told of before it answers, and is ended where what is told of it fails', async () => {
    const told: number[] = [];
    const onSpawn = (pid: number) => {
      told.push(pid);
      throw new Error('disk full');
    };
    await expect(startNats({ onSpawn })).rejects.toThrow('disk full');
    expect(told.length).toBeGreaterThan(0);
    while (told.some(isAlive)) await delay(10);
  });

  it('can be started several times at once', async () => {
    const servers = await Promise.all([startNats(), startNats(), startNats()]);
    expect(new Set(servers.map(({ port }) => port)).size).toBe(3);
    await Promise.all(servers.map((each) => each.stop()));
  });
});
