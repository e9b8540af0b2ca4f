import { expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import type { RunRef } from '../objects.js';
import type { Containers } from './containers.js';
import type { Engine } from './engine.js';
import { FakeEngine } from './fake-engine-fixture.js';
import { Links } from './links.js';
import { Names } from './names.js';
import { Sessions } from './sessions.js';

const pod: RunRef = { kind: 'pod', id: 'p1', run: 1 };
const running = { Id: 'c1', State: { Status: 'running', StartedAt: 'now' } };

/** Links over parts that a spec gives. */
function linksOver(
  containers: Partial<Record<keyof Containers, unknown>>,
  { engine = {}, sessions = new Sessions() }: { engine?: Partial<Engine>; sessions?: Sessions } = {},
): Links {
  const found = {
    find: () => Promise.resolve({ ...running, Config: { Labels: { 'dev.atoll.team': 'ours' } } }),
    ...containers,
  };
  const parts = { engine: engine as Engine, containers: found as unknown as Containers, sessions };
  return new Links({ ...parts, names: new Names('here') }, 'helper');
}

it('tells whoever waits for a connection that is opening when the driver is closed, and nobody else', async () => {
  const creation = Promise.withResolvers<string>();
  const begun = Promise.withResolvers<void>();
  const links = linksOver({ create: () => (begun.resolve(), creation.promise) });
  const connecting = links.connect(pod, 80, new AbortController().signal);
  await begun.promise;
  links.close();
  creation.reject(new Error('The connection was closed.'));
  await expect(connecting).rejects.toThrow('The connection was closed.');
  // A rejection that nobody handles fails the spec, as it would end the process.
  await turn();
});

it('takes a session of the team of the pod, and gives it back where the helper does not come', async () => {
  const sessions = new Sessions({ sessions: 10, sessionsOfTeam: 1 });
  const create = jest.fn(() => Promise.reject(new Error('not now')));
  const links = linksOver({ create }, { sessions });
  const connect = () => links.connect(pod, 80, new AbortController().signal);
  for (let count = 0; count < 3; count += 1) await expect(connect()).rejects.toThrow('not now');
  const end = sessions.begin('ours');
  await expect(connect()).rejects.toMatchObject({ code: 'no_space' });
  expect(create).toHaveBeenCalledTimes(3);
  end();
  await expect(connect()).rejects.toThrow('not now');
});

/** A helper's container that is created, and attached to, and whose start ends as the spec says. */
async function failing(
  start: (answer: ServerResponse) => void,
  removal: number,
): Promise<FakeEngine & { removed: string[] }> {
  const removed: string[] = [];
  const engine = await FakeEngine.start(({ method, url }, response) => {
    if (method === 'DELETE') {
      removed.push(url.replace(/\?.*/, ''));
      response.writeHead(removal).end('{"message":"The removal failed."}');
    } else if (url.includes('/start?')) start(response);
    else if (url.includes('/create?')) response.writeHead(201).end('{"Id":"helper"}');
    else response.end(JSON.stringify({ ...running, Config: { Labels: { 'dev.atoll.installation': 'i1' } } }));
  });
  return Object.assign(engine, { removed });
}

it('removes a helper that did not open in time', async () => {
  const late = new AbortController();
  const engine = await failing(() => late.abort(), 204);
  const timeouts = jest.spyOn(AbortSignal, 'timeout').mockReturnValueOnce(late.signal);
  await expect(engine.driver.connect(pod, 80, new AbortController().signal)).rejects.toMatchObject({ code: 'timeout' });
  expect(engine.removed).toEqual(['/v1.41/containers/helper']);
  timeouts.mockRestore();
  await engine.stop();
});

it('says why a helper did not open, whatever becomes of its removal', async () => {
  const engine = await failing((answer) => answer.writeHead(500).end('{"message":"no space left on device"}'), 500);
  await expect(engine.driver.connect(pod, 80, new AbortController().signal)).rejects.toMatchObject({
    code: 'no_space',
  });
  expect(engine.removed).toEqual(['/v1.41/containers/helper']);
  // One that starts all the same ends with its connection.
  const [session] = engine.sessions;
  if (!session?.closed) await once(session!, 'close', { signal: AbortSignal.timeout(60_000) });
  await engine.stop();
});

it('ends nothing else where the connection to a helper breaks before the helper has started', async () => {
  const socket = new PassThrough();
  const start = async (): Promise<void> => {
    socket.destroy(new Error('The connection was reset.'));
    await turn();
    throw new Error('The helper did not start.');
  };
  const remove = () => Promise.resolve();
  const helper = { create: () => Promise.resolve('helper'), upload: remove, start, remove };
  const links = linksOver(helper, { engine: { upgrade: () => Promise.resolve(socket) } });
  await expect(links.connect(pod, 80, new AbortController().signal)).rejects.toThrow('The helper did not start.');
});
