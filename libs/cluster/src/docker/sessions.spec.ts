import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { RunRef } from '../objects.js';
import type { Shell } from '../shell.js';
import { FakeEngine } from './fake-engine-fixture.js';
import { Sessions } from './sessions.js';

const soon = () => AbortSignal.timeout(60_000);

let engine: FakeEngine;
/** What the engine was asked for. */
let asked: EventEmitter;
let execs: number;
/** Of each process that has ended. */
let exitCode: number;
/** The engine has not answered them: what asks for a pod of `busy…`. */
let held: ServerResponse[];
beforeEach(async () => {
  [asked, execs, exitCode, held] = [new EventEmitter(), 0, 0, []];
  engine = await FakeEngine.start(({ url }, response) => {
    const [, teamId = ''] = /pod-(\w+)-1\/json/.exec(url) ?? [];
    if (teamId) asked.emit('pod', teamId);
    if (teamId.startsWith('busy')) held.push(response);
    else if (url.includes('/stop?')) asked.emit('stop');
    else if (url.includes('/logs?')) {
      response.writeHead(200).flushHeaders();
      asked.emit('log');
    } else if (url.includes('/containers/ending/exec')) response.writeHead(409).end('{"message":"not running"}');
    else if (/\/containers\/\w+\/exec/.test(url)) response.writeHead(201).end(`{"Id":"e${(execs += 1)}"}`);
    else if (/\/exec\/\w+\/json/.test(url)) response.end(JSON.stringify({ Running: false, ExitCode: exitCode }));
    else {
      const Labels = { 'dev.atoll.installation': 'i1', 'dev.atoll.team': teamId };
      response.end(JSON.stringify({ Id: teamId, State: { Status: 'running' }, Config: { Labels } }));
    }
  });
});
afterEach(() => engine.stop());

const podOf = (teamId: string): RunRef => ({ kind: 'pod', id: teamId, run: 1 });
const terminal = { columns: 80, rows: 24, type: 'xterm' };
const open = (teamId: string): Promise<Shell> =>
  engine.driver.openShell(podOf(teamId), { command: null, terminal, env: new Map() }, soon());
const stopOf = async (teamId: string): Promise<void> => {
  const isAsked = once(asked, 'stop', { signal: soon() });
  await engine.driver.stopPod(podOf(teamId), 0, soon());
  await isAsked;
};
const openMany = (teamId: string, count: number) => Promise.all(Array.from({ length: count }, () => open(teamId)));
const refusal = (count: number) => ({
  code: 'no_space',
  message: `The team has ${count} sessions in pods of this cluster, the most that it may have now. End one, or try again later.`,
});

it('a pod is stopped however many shells are open, or are wanted', async () => {
  for (let count = 0; count < 17; count += 1)
    await Promise.allSettled(Array.from({ length: 64 }, (_, at) => open(`t${at % 5}`)));
  await stopOf('t0');
});

it('a pod has a shell, and is stopped, before all the shells that are asked for in another pod', async () => {
  let ofOther = 0;
  asked.on('pod', (teamId) => (ofOther += teamId === 't1' ? 1 : 0));
  const many = Array.from({ length: 200 }, () => open('t1'));
  await open('t2');
  await engine.driver.stopPod(podOf('t2'), 0, soon());
  expect(ofOther).toBeLessThan(150);
  await Promise.all(many);
});

describe('however many pods are busy with what their users ask for, and though the engine answers none of that,', () => {
  let over: AbortController;
  let shell: Shell;
  let ended: number;
  let asking: Promise<unknown>[];
  beforeEach(async () => {
    [over, shell, ended, asking] = [new AbortController(), await open('t0'), 0, []];
  });

  /** Asks 5 times for each of 20 pods. */
  function ask(work: (pod: RunRef, signal: AbortSignal) => Promise<unknown>): void {
    for (let at = 0; at < 100; at += 1)
      asking.push(work(podOf(`busy${at % 20}`), over.signal).catch(() => (ended += 1)));
  }

  async function othersAreServed(): Promise<void> {
    await stopOf('t0');
    await Promise.all(Array.from({ length: 50 }, () => engine.driver.observePods([podOf('t0')], soon())));
    await shell.signal('SIGWINCH');
    await shell.resize({ columns: 100, rows: 24 });
    expect(ended).toBe(0);
    expect(held).toHaveLength(8);
    over.abort();
    await Promise.all(asking);
  }

  it('other pods are stopped, observed, resized and signalled beside commands', async () => {
    const request = { command: ['true'], terminal: null, env: new Map() };
    ask((pod, signal) => engine.driver.openShell(pod, request, signal));
    await othersAreServed();
  });

  it('other pods are stopped, observed, resized and signalled beside forwarded connections', async () => {
    ask((pod, signal) => engine.driver.connect(pod, 80, signal));
    await othersAreServed();
  });
});

it('a pod is stopped, and has a shell, however many logs are read', async () => {
  const left = new AbortController();
  const read = () => engine.driver.readLogs(podOf('t0'), null, left.signal)[Symbol.asyncIterator]().next();
  const reading: Promise<unknown>[] = [];
  for (let count = 0; count < 1_024; count += 1) {
    const isRead = once(asked, 'log', { signal: soon() });
    reading.push(read().catch(() => undefined));
    await isRead;
  }
  for (let count = 0; count < 100; count += 1) reading.push(read().catch(() => undefined));
  await open('t0');
  await stopOf('t0');
  left.abort();
  await Promise.all(reading);
});

it('a shell whose end the engine has not seen has ended with a code that nobody knows', async () => {
  exitCode = -1;
  const shell = await open('t0');
  for (const output of [shell.stdout, shell.stderr]) output.resume();
  engine.sessions[0]?.destroy();
  expect((await shell.exit).code).toBeNull();
});

it('a team has 256 shells, and another as many; one that ends makes room, and one that is refused costs the engine nothing', async () => {
  await openMany('one', 256);
  await expect(open('one')).rejects.toMatchObject(refusal(256));
  expect(execs).toBe(256);
  await openMany('other', 256);
  engine.sessions[0]?.destroy();
  // The driver sees its end when it comes to it.
  while (!(await open('one').catch(() => undefined)));
  await expect(open('one')).rejects.toMatchObject(refusal(256));
});

it('a shell that could not be opened takes no place', async () => {
  for (let count = 0; count < 300; count += 1)
    await expect(open('ending')).rejects.toMatchObject({ code: 'not_found' });
});

it('however many teams one user can use at once, and take all they can, another has a session', () => {
  const sessions = new Sessions();
  const countOf = (teamId: string): number => {
    for (let count = 0; ; count += 1)
      try {
        sessions.begin(teamId);
      } catch {
        return count;
      }
  };
  const counts = Array.from({ length: 50 }, (_, at) => countOf(`team ${at}`));
  expect(counts.slice(0, 6)).toEqual([256, 256, 117, 67, 44, 31]);
  expect(countOf('another')).toBe(1);
});

it('a session that is ended twice makes one place', () => {
  const sessions = new Sessions({ sessions: 10, sessionsOfTeam: 2 });
  const end = sessions.begin('one');
  sessions.begin('one');
  end();
  end();
  sessions.begin('one');
  expect(() => sessions.begin('one')).toThrow('The team has 2 sessions');
});

it('what has ended takes no place of other teams either', () => {
  const sessions = new Sessions({ sessions: 10, sessionsOfTeam: 2 });
  for (let count = 0; count < 20; count += 1) sessions.begin('one')();
  for (let count = 0; count < 2; count += 1) sessions.begin('other');
});
