import { afterEach, expect, it, jest } from '@jest/globals';
import { eventually, soon } from '../contract/cluster-under-test-fixture.js';
import { FakeEngine } from './fake-engine-fixture.js';

const pod = { kind: 'pod', id: 'p1', run: 1 } as const;
const container = { Id: 'c1', Config: { Labels: { 'dev.atoll.installation': 'i1' } } };

let engine: FakeEngine;
afterEach(async () => {
  jest.restoreAllMocks();
  await engine.stop();
});

it('a container that an engine leaves stopping is removed by force, not before its grace and the time for its end', async () => {
  const graceMs = 10_000;
  const clock = jest.spyOn(performance, 'now').mockReturnValue(0);
  const asked: string[] = [];
  const stopping = { ...container, State: { Status: 'stopping' } };
  engine = await FakeEngine.start(({ method = '', url }, response) => {
    if (method !== 'GET') asked.push(`${method} ${url.replace(/^\/v[\d.]+/, '')}`);
    if (method === 'GET') response.end(JSON.stringify(url.includes('/containers/json') ? [] : stopping));
    else response.writeHead(204).end();
  });
  const stop = () => engine.driver.stopPod(pod, graceMs, soon());
  const removals = () => asked.filter((request) => request.startsWith('DELETE'));
  /** The engine has answered the one before. */
  const untilStopped = (times: number) =>
    eventually(async () => (await stop(), asked.length >= times ? true : undefined));
  await untilStopped(2);
  clock.mockReturnValue(graceMs + 29_000);
  await untilStopped(4);
  expect(removals()).toEqual([]);
  clock.mockReturnValue(graceMs + 31_000);
  await eventually(async () => (await stop(), removals().length > 0 ? true : undefined));
  expect(removals()).toEqual(['DELETE /containers/c1?force=true&v=true']);
});

it('a stop is over where a list does not show its container: what has its name later gets its own grace', async () => {
  const clock = jest.spyOn(performance, 'now').mockReturnValue(0);
  const asked: string[] = [];
  let isThere = true;
  engine = await FakeEngine.start(({ method = '', url }, response) => {
    const path = url.replace(/^\/v[\d.]+/, '');
    if (method !== 'GET') asked.push(`${method} ${path}`);
    if (path.startsWith('/volumes')) response.end('{"Volumes":[]}');
    else if (path.startsWith('/networks') || path.startsWith('/containers/json')) response.end('[]');
    else if (!isThere) response.writeHead(404).end('{"message":"No such container"}');
    else if (method === 'GET') response.end(JSON.stringify({ ...container, State: { Status: 'stopping' } }));
    else response.writeHead(204).end();
  });
  const untilAsked = (times: number) =>
    eventually(async () => (await engine.driver.stopPod(pod, 0, soon()), asked.length >= times ? true : undefined));
  // The second is requested where the first was answered.
  await untilAsked(2);
  isThere = false;
  for await (const { ref } of engine.driver.list(soon())) throw new Error(`${ref.id} is gone.`);
  isThere = true;
  asked.splice(0);
  clock.mockReturnValue(31_000);
  await untilAsked(2);
  expect(new Set(asked)).toEqual(new Set(['POST /containers/c1/stop?t=0']));
});

it('a run whose end the engine has not seen has ended with a code that nobody knows', async () => {
  const State = { Status: 'stopped', ExitCode: -1, OOMKilled: false, FinishedAt: '2026-01-01T00:00:00Z' };
  engine = await FakeEngine.start((_request, response) =>
    response.end(JSON.stringify({ ...container, State, HostConfig: { Memory: 1 } })),
  );
  expect(await engine.driver.observePods([pod], soon())).toMatchObject([{ phase: 'ended', exit: { code: null } }]);
});
