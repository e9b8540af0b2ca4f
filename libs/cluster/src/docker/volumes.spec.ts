import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { eventually } from '../contract/cluster-under-test-fixture.js';
import { Engine } from './engine.js';
import { FakeEngine } from './fake-engine-fixture.js';
import { Names } from './names.js';
import { Volumes } from './volumes.js';

const names = new Names('i1');
const ref = { kind: 'volume', id: 'v1', run: 0, teamId: 't1' } as const;
const soon = () => AbortSignal.timeout(60_000);

let fake: FakeEngine;
/** What the engine says that the volume uses. */
let usedBytes: number;
beforeEach(async () => {
  usedBytes = 1;
  fake = await FakeEngine.start((_request, response) => {
    const volume = { Name: names.ofVolume(ref)[0], Labels: names.labels(ref, { teamId: 't1', workspaceId: 'w1' }) };
    response.end(JSON.stringify({ Volumes: [{ ...volume, UsageData: { Size: usedBytes } }] }));
  });
});
afterEach(() => fake.stop());

it('the used bytes are read again once they are too old, although the clock was set back meanwhile', async () => {
  const ageMs = 3_600_000;
  const volumes = new Volumes(new Engine({ socketPath: fake.socketPath }), names, ageMs);
  const untilUsed = (bytes: number) =>
    eventually(async () => {
      const [sight] = await volumes.observe([ref], soon());
      return sight?.phase === 'ready' && sight.usedBytes === bytes ? bytes : undefined;
    });
  await untilUsed(1);
  usedBytes = 2;
  const [realNow, realElapsed] = [Date.now, performance.now.bind(performance)];
  const clock = jest.spyOn(Date, 'now').mockImplementation(() => realNow() - ageMs);
  const elapsed = jest.spyOn(performance, 'now').mockImplementation(() => realElapsed() + ageMs);
  try {
    expect(await untilUsed(2)).toBe(2);
  } finally {
    clock.mockRestore();
    elapsed.mockRestore();
  }
});
