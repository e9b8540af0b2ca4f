import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Containers } from './containers.js';
import { Engine } from './engine.js';
import { FakeEngine } from './fake-engine-fixture.js';
import { Images } from './images.js';
import { IsolationProbe } from './isolation-probe.js';
import { Keepers } from './keepers.js';
import { Names } from './names.js';

const soon = () => AbortSignal.timeout(60_000);

let fake: FakeEngine;
/** How often the engine was asked for the containers that a probe has left, with which each run begins. */
let runs = 0;
beforeEach(async () => {
  runs = 0;
  fake = await FakeEngine.start(({ url }, response) => {
    if (!url.includes('/containers/json')) return void response.writeHead(404).end('{"message":"No such image"}');
    runs += 1;
    response.end('[]');
  });
});
afterEach(() => fake.stop());

it('a probe runs at most once a period, and again after it although the clock was set back meanwhile', async () => {
  const [engine, names] = [new Engine({ socketPath: fake.socketPath }), new Names('i1')];
  const containers = new Containers(engine, names);
  const images = new Images(engine, names, { turnMs: 60_000, stallMs: 60_000, reviewMs: 60_000 }, () => undefined);
  const parts = { engine, names, containers, images, keepers: new Keepers({ engine, names, containers }) };
  const everyMs = 3_600_000;
  const probe = new IsolationProbe(parts, 'door', everyMs);
  await probe.runIfDue(soon());
  await probe.runIfDue(soon());
  expect(runs).toBe(1);
  const [realNow, realElapsed] = [Date.now, performance.now.bind(performance)];
  const clock = jest.spyOn(Date, 'now').mockImplementation(() => realNow() - everyMs);
  const elapsed = jest.spyOn(performance, 'now').mockImplementation(() => realElapsed() + everyMs);
  try {
    await probe.runIfDue(soon());
  } finally {
    clock.mockRestore();
    elapsed.mockRestore();
  }
  expect(runs).toBe(2);
});
