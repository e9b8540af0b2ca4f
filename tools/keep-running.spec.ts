import { spawn, type ChildProcess } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { keepRunning, type Supervision } from './keep-running.js';

let stopping: AbortController;
let children: Map<string, ChildProcess>;
let told: string[];
/** What `add` throws, one a call. */
let refusals: Error[];
let written: Set<number | undefined>;
let supervision: Supervision;
const started: ChildProcess[] = [];

beforeEach(() => {
  stopping = new AbortController();
  children = new Map();
  told = [];
  refusals = [];
  written = new Set();
  supervision = {
    own: {
      add: (pid) => {
        const refusal = refusals.shift();
        if (refusal) throw refusal;
        written.add(pid);
      },
      remove: (pid) => void written.delete(pid),
    },
    children,
    stopping: stopping.signal,
    restartAfterMs: 1,
    tell: (line) => told.push(line),
  };
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

function start(command = process.execPath): ChildProcess {
  const child = spawn(command, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' });
  started.push(child);
  return child;
}

/** Runs until the last of the attempts is written down, and stops that one. */
async function runUntilWritten(attempts: (() => ChildProcess)[]): Promise<void> {
  const left = [...attempts];
  const add = supervision.own.add;
  supervision.own.add = (pid) => {
    add(pid);
    if (left.length > 0) return;
    stopping.abort();
    started.at(-1)?.kill('SIGKILL');
  };
  await keepRunning('teams', () => (left.shift() ?? start)(), supervision);
}

describe('a process that cannot be started is tried again, with the reason', () => {
  it('where the system says so later, as without processes', async () => {
    await runUntilWritten([() => start('/no/such/program'), start]);
    expect(told).toEqual([
      'teams cannot run: spawn /no/such/program ENOENT; it starts again in 1 ms',
      `teams: process ${started[1]?.pid}`,
    ]);
  });

  it('where the system says so at once, as without memory', async () => {
    const fail = () => {
      throw new Error('spawn ENOMEM');
    };
    await runUntilWritten([fail, start]);
    expect(told[0]).toBe('teams cannot run: spawn ENOMEM; it starts again in 1 ms');
  });
});

it('a process that cannot be written down is ended, and tried again with the reason', async () => {
  refusals = [new Error('ENOSPC: no space left on device')];
  await runUntilWritten([start, start]);
  expect(started.map(({ signalCode }) => signalCode)).toEqual(['SIGKILL', 'SIGKILL']);
  expect(told).toEqual([
    'teams cannot run: ENOSPC: no space left on device; it starts again in 1 ms',
    `teams: process ${started[1]?.pid}`,
  ]);
  expect([children.size, written.size]).toEqual([0, 0]);
});

it('a process that dies is started again', async () => {
  const dies = () => {
    const child = start();
    child.kill('SIGTERM');
    return child;
  };
  await runUntilWritten([dies, start]);
  expect(told).toEqual([
    `teams: process ${started[0]?.pid}`,
    'teams ended (SIGTERM); it starts again in 1 ms',
    `teams: process ${started[1]?.pid}`,
  ]);
});
