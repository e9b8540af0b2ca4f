import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import fc from 'fast-check';
import type { Shell } from '../shell.js';
import { LatestSize, PendingSignals } from './exec-gestures.js';
import { FakeEngine } from './fake-engine-fixture.js';

const soon = () => AbortSignal.timeout(60_000);

it('law: of any sizes one is set at a time, the last of them last, and of a burst two at most', async () => {
  const step = fc.record({ columns: fc.integer({ min: 1, max: 9 }), fails: fc.boolean(), waits: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 50 }), async (steps) => {
      const set: number[] = [];
      let atOnce = 0;
      const failing = new Set(steps.filter(({ fails }) => fails).map(({ columns }) => columns));
      const latest = new LatestSize(async ({ columns }) => {
        expect((atOnce += 1)).toBe(1);
        await new Promise(setImmediate);
        atOnce -= 1;
        if (failing.has(columns)) throw new Error('refused');
        set.push(columns);
      });
      const all = [];
      for (const { columns, waits } of steps) {
        all.push(latest.set({ columns, rows: 1 }));
        if (waits) await Promise.allSettled(all);
      }
      const outcomes = await Promise.allSettled(all);
      const last = steps.at(-1)?.columns ?? 0;
      if (failing.has(last)) expect(outcomes.at(-1)?.status).toBe('rejected');
      else expect([outcomes.at(-1)?.status, set.at(-1)]).toEqual(['fulfilled', last]);
      // Of each burst the first and the last.
      expect(set.length).toBeLessThanOrEqual(2 * (steps.filter(({ waits }) => waits).length + 1));
    }),
  );
});

it('sends signals in order, and none twice that waits already', async () => {
  const sent: string[] = [];
  const signals = new PendingSignals(async (signal) => {
    await new Promise(setImmediate);
    sent.push(signal);
  });
  await Promise.all(Array.from({ length: 10_000 }, (_none, index) => signals.add(['INT', 'HUP', 'TERM'][index % 3]!)));
  expect(sent).toEqual(['INT', 'HUP', 'TERM']);
  await signals.add('INT');
  expect(sent).toEqual(['INT', 'HUP', 'TERM', 'INT']);
});

describe('shells of an engine', () => {
  let engine: FakeEngine;
  const held: ServerResponse[] = [];
  /** Emits the pod whose terminal is resized. */
  const resized = new EventEmitter();
  let [resizes, signals, isHolding] = [0, 0, true];
  beforeAll(async () => {
    engine = await FakeEngine.start(({ url }, response) => {
      const [, pod = ''] = /\/(?:containers\/(?:.*pod-)?|exec\/of-)(p\d)/.exec(url) ?? [];
      if (url.includes('/resize?')) {
        resizes += 1;
        hold(response);
        resized.emit(pod);
      } else if (/\/exec\/\w+\/start/.test(url)) {
        signals += 1;
        hold(response);
      } else if (/\/containers\/[^/]+\/exec/.test(url)) response.writeHead(201).end(`{"Id":"of-${pod}"}`);
      else if (/\/exec\/\w+\/json/.test(url)) response.end('{"Running":true,"ExitCode":null}');
      else
        response.end(
          JSON.stringify({
            Id: pod,
            State: { Status: 'running' },
            Config: { Labels: { 'dev.atoll.installation': 'i1' } },
          }),
        );
    });
  });
  afterAll(async () => {
    isHolding = false;
    for (const response of held) response.end();
    await engine.stop();
  });

  function hold(response: ServerResponse): void {
    if (isHolding) held.push(response);
    else response.end();
  }

  const ref = (id: string) => ({ kind: 'pod', id, run: 1 }) as const;
  const open = (pod: string): Promise<Shell> =>
    engine.driver.openShell(
      ref(pod),
      { command: null, terminal: { columns: 80, rows: 24, type: 'xterm' }, env: new Map() },
      soon(),
    );

  it('take the calls of nobody else, however often they are resized and signalled, and though nothing answers that', async () => {
    const shells = await Promise.all(Array.from({ length: 20 }, () => open('p1')));
    const asked: Promise<unknown>[] = [];
    for (let count = 0; count < 500; count++)
      for (const shell of shells) asked.push(shell.resize({ columns: 1 + count, rows: 24 }), shell.signal('SIGWINCH'));
    for (const one of asked) one.catch(() => undefined);
    // Answered only if a call is left for others.
    await Promise.all(Array.from({ length: 50 }, () => engine.driver.observePods([ref('p2')], soon())));
    expect(resizes + signals).toBeLessThanOrEqual(4);
    isHolding = false;
    for (const response of held.splice(0)) response.end();
    await Promise.all(asked);
    expect(resizes).toBeLessThanOrEqual(2 * shells.length);
    expect(signals).toBeLessThanOrEqual(2 * shells.length);
  });

  it('are resized after one call for each other pod, however many of those wait', async () => {
    isHolding = true;
    const shells = await Promise.all(Array.from({ length: 20 }, () => open('p1')));
    const other = await open('p2');
    resizes = 0;
    const asked = shells.map((shell) => shell.resize({ columns: 100, rows: 24 }));
    while (held.length < 4) await once(resized, 'p1', { signal: soon() });
    const isTurn = once(resized, 'p2', { signal: soon() });
    asked.push(other.resize({ columns: 100, rows: 24 }));
    held.shift()?.end();
    await isTurn;
    expect(resizes).toBe(5);
    isHolding = false;
    for (const response of held.splice(0)) response.end();
    await Promise.all(asked);
  });
});
