import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { startOf } from '@atoll/database';
import { OwnProcesses } from './own-processes.js';

let folder: string;
const children: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-own-'));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

async function start(script: string): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['-e', `${script}; console.log('started'); setInterval(() => {}, 1000)`], {
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  children.push(child);
  await once(child.stdout, 'data');
  return child;
}

/** As a supervisor leaves it that was killed. */
function leave(...lines: string[]): void {
  mkdirSync(join(folder, 'processes'), { recursive: true });
  writeFileSync(join(folder, 'processes', 'started'), lines.join('\n'));
}
const line = (child: ChildProcess, started = startOf(child.pid ?? 0)) => `${child.pid} ${started}`;
const signalOf = async (child: ChildProcess) => child.signalCode ?? ((await once(child, 'exit')) as [null, string])[1];

describe('the processes of a supervisor that was killed', () => {
  it('are ended by the next one, also where they do not want to', async () => {
    const [willing, unwilling] = [await start(''), await start(`process.on('SIGTERM', () => {})`)];
    leave(line(willing), line(unwilling));
    const ended = Promise.all([signalOf(willing), signalOf(unwilling)]);
    const told: number[] = [];
    await OwnProcesses.takeOver(folder, (pid) => told.push(pid));
    expect(await ended).toEqual(['SIGTERM', 'SIGKILL']);
    expect(told).toEqual([willing.pid, unwilling.pid]);
  });

  it('are left alone where their id belongs to another process by now', async () => {
    const stranger = await start('');
    leave(line(stranger, 'some other instant'), 'no line at all', '');
    await OwnProcesses.takeOver(folder);
    expect([stranger.exitCode, stranger.signalCode]).toEqual([null, null]);
  });

  it('are those that it wrote down and that have not ended', async () => {
    const own = await OwnProcesses.takeOver(folder);
    const [one, other] = [await start(''), await start('')];
    own.add(one.pid);
    own.add(other.pid);
    own.remove(one.pid);
    expect(readFileSync(join(folder, 'processes', 'started'), 'utf8')).toBe(`${line(other)}\n`);
  });
});

describe('a folder', () => {
  it('has one supervisor at a time', async () => {
    await OwnProcesses.takeOver(folder);
    await expect(OwnProcesses.takeOver(folder)).rejects.toThrow(`is in use by process ${process.pid}`);
  });
});
