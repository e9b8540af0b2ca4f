import { once } from 'node:events';
import { Agent, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, jest } from '@jest/globals';
import { teams } from '@atoll/contracts/teams';
import { timeoutFactor } from '@atoll/testing';
import { startGateway } from '../testing/gateway-fixture.js';
import { aTeam, teamId } from '../testing/team-fixture.js';
import { Draining } from './draining.js';

interface Answer {
  status: number;
  connection: string | undefined;
}

function get(agent: Agent, port: number, path: string, key?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    request({ agent, port, path, host: '127.0.0.1', headers }, (incoming) => {
      incoming
        .resume()
        .on('end', () => resolve({ status: incoming.statusCode ?? 0, connection: incoming.headers.connection }));
    })
      .on('error', reject)
      .end();
  });
}

describe('a gateway that is told to stop', () => {
  it('says so, answers what is open, closes kept connections, and only then ends', async () => {
    const drainDelayMs = 200;
    const gateway = await startGateway({ drainDelayMs, deadlineMs: 60_000 * timeoutFactor });
    const key = gateway.services.key();
    let release = (): void => undefined;
    const reached = new Promise<void>((resolve) => {
      gateway.services.answer(teams.get, async () => {
        resolve();
        await new Promise<void>((released) => (release = released));
        return aTeam();
      });
    });
    await gateway.app.listen(0, '127.0.0.1');
    const { port } = gateway.app.getHttpServer().address() as AddressInfo;
    const [busy, idle] = [new Agent({ keepAlive: true, maxSockets: 1 }), new Agent({ keepAlive: true, maxSockets: 1 })];
    expect((await get(idle, port, '/readyz')).status).toBe(200);
    const open = get(busy, port, `/api/team/${teamId}`, key);
    await reached;

    // The pause lasts until two requests are answered in it, however long a busy machine takes for them.
    const draining = gateway.app.get(Draining);
    const pause = draining.beforeApplicationShutdown.bind(draining);
    const asked = Promise.withResolvers<void>();
    let pausedMs = 0;
    jest.spyOn(draining, 'beforeApplicationShutdown').mockImplementation(async () => {
      const begunMs = performance.now();
      await pause();
      pausedMs = performance.now() - begunMs;
      await asked.promise;
    });
    const closed = gateway.close();
    expect(await get(idle, port, '/readyz')).toEqual({ status: 503, connection: 'close' });
    expect((await get(idle, port, '/livez')).status).toBe(200);
    asked.resolve();
    let ended = false;
    void closed.then(() => (ended = true));
    await refused(idle, port);
    expect(ended).toBe(false);
    // A timer may be a millisecond early.
    expect(pausedMs).toBeGreaterThanOrEqual(drainDelayMs - 1);
    release();
    expect(await open).toEqual({ status: 200, connection: 'close' });
    await closed;
    busy.destroy();
    idle.destroy();
  });

  it('answers what had arrived on a kept connection when a busy process came to close it', async () => {
    const drainDelayMs = 100;
    const gateway = await startGateway({ drainDelayMs });
    await gateway.app.listen(0, '127.0.0.1');
    const { port } = gateway.app.getHttpServer().address() as AddressInfo;
    const flags = new Int32Array(new SharedArrayBuffer(8));
    const client = new Worker(clientThread, { eval: true, workerData: { port, flags } });
    const said = (): Promise<unknown> => once(client, 'message').then(([message]: unknown[]) => message);
    expect(await said()).toBe('HTTP/1.1 200 OK');
    const answer = said();
    const draining = gateway.app.get(Draining);
    const pause = draining.beforeApplicationShutdown.bind(draining);
    const begun = Promise.withResolvers<void>();
    jest.spyOn(draining, 'beforeApplicationShutdown').mockImplementation(() => {
      const paused = pause();
      begun.resolve();
      return paused;
    });
    const closed = gateway.close();
    await begun.promise;
    // Busy from before the request until after the pause.
    Atomics.store(flags, 0, 1);
    Atomics.notify(flags, 0);
    Atomics.wait(flags, 1, 0);
    Atomics.wait(flags, 1, 1, drainDelayMs * 2);
    expect(await answer).toBe('HTTP/1.1 200 OK');
    await closed;
    await client.terminate();
  });
});

/** Says the first line of each of two answers on one connection, or `lost`. The second request waits for its flag. */
const clientThread = `
  const { parentPort, workerData: { port, flags } } = require('node:worker_threads');
  const ask = () => socket.write('GET /livez HTTP/1.1\\r\\nHost: atoll\\r\\n\\r\\n');
  const socket = require('node:net').connect(port, '127.0.0.1', ask);
  let answers = 0;
  socket.setNoDelay(true).on('data', (bytes) => {
    parentPort.postMessage(String(bytes).split('\\r\\n')[0]);
    if (++answers > 1) return;
    Atomics.wait(flags, 0, 0);
    ask();
    Atomics.store(flags, 1, 1);
    Atomics.notify(flags, 1);
  });
  socket.on('error', () => undefined).on('close', () => parentPort.postMessage('lost'));
`;

/** Resolves once no new connection is taken any more. */
async function refused(agent: Agent, port: number): Promise<void> {
  for (; ; await delay(50)) {
    try {
      await get(agent, port, '/livez');
    } catch {
      return;
    }
  }
}
