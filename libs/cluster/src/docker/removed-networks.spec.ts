import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { soon, wanted } from '../contract/cluster-under-test-fixture.js';
import { FakeEngine, plainPod } from './fake-engine-fixture.js';
import { Names } from './names.js';

const names = new Names('i1');
const owner = { teamId: 't1', workspaceId: 'w1' };
const podOf = (id: string) => plainPod({ ref: { kind: 'pod', id, run: 1 }, owner });

let engine: FakeEngine;
/** Paths of what was created, in order. */
let created: string[];
/** The networks that the engine lists. */
let networks: object[];
beforeEach(async () => {
  [created, networks] = [[], []];
  engine = await FakeEngine.start(({ method = '', url }, response) => {
    const path = new URL(url, 'http://engine').pathname.replace(/^\/v[\d.]+/, '');
    if (path.endsWith('/create')) created.push(path);
    if (path === '/networks/create') networks = [{ Labels: names.networkLabels(owner) }];
    const answers: Record<string, unknown> = {
      '/networks/create': { Id: 'n1' },
      '/networks': networks,
      '/containers/create': { Id: 'c1' },
      '/containers/json': [
        { Id: 'c1', Names: [], Created: 1, State: 'running', Labels: names.labels(podOf('p0').ref, owner) },
      ],
      '/volumes': { Volumes: [] },
      '/info': { NCPU: 4 },
      '/images/image/json': {},
    };
    if (path in answers) response.end(JSON.stringify(answers[path]));
    else if (method === 'GET') response.writeHead(404).end('{"message":"No such container"}');
    else response.writeHead(204).end();
  });
});
afterEach(() => engine.stop());

it('a network that another process has removed is created with the next pod, once a list has not shown it', async () => {
  const start = async (id: string) => {
    created = [];
    await engine.driver.startPod(podOf(id), wanted, soon());
    return created;
  };
  const list = async () => {
    for await (const { ref } of engine.driver.list(soon())) expect(ref.id).toBe('p0');
  };
  expect(await start('p1')).toEqual(['/networks/create', '/containers/create']);
  await list();
  expect(await start('p2')).toEqual(['/containers/create']);
  networks = [];
  await list();
  expect(await start('p3')).toEqual(['/networks/create', '/containers/create']);
});
