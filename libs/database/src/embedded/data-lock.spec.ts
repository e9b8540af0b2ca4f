import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeWhere } from '@atoll/testing';
import { DataFolderInUseError, lockDataFolder } from './data-lock.js';
import { startOf } from './process-identity.js';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'atoll-lock-'));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

const write = (pid: number, start: string) => writeFileSync(join(dataDir, 'atoll.pid'), `${pid}\n${start}\n`);
const holder = () => readFileSync(join(dataDir, 'atoll.pid'), 'utf8').split('\n')[0];

describe('lockDataFolder', () => {
  it('refuses a second taker, naming the process that holds the folder, until that one lets go', () => {
    const unlock = lockDataFolder(dataDir);
    expect(() => lockDataFolder(dataDir)).toThrow(new DataFolderInUseError(dataDir, process.pid));
    expect(() => lockDataFolder(dataDir)).toThrow(`in use by process ${process.pid}.`);
    unlock();
    lockDataFolder(dataDir)();
    expect(readdirSync(dataDir)).toEqual([]);
  });

  it('respects a holder of another user', () => {
    write(1, startOf(1));
    expect(() => lockDataFolder(dataDir)).toThrow('in use by process 1.');
  });

  it.each([
    ['of a process that is gone', () => write(2 ** 30, 'then')],
    ['whose process id belongs to another process by now', () => write(process.pid, `${startOf(process.pid)}0`)],
    ['that is empty', () => writeFileSync(join(dataDir, 'atoll.pid'), '')],
    ['that is no such file at all', () => writeFileSync(join(dataDir, 'atoll.pid'), 'hello\nworld')],
  ])('takes over a file %s', (_what, leave) => {
    leave();
    const unlock = lockDataFolder(dataDir);
    expect(holder()).toBe(String(process.pid));
    unlock();
    expect(readdirSync(dataDir)).toEqual([]);
  });

  it('does not take away, when letting go, what another process holds by now', () => {
    const unlock = lockDataFolder(dataDir);
    write(1, startOf(1));
    unlock();
    expect(holder()).toBe('1');
  });
});

const isRoot = process.platform === 'linux' && process.getuid?.() === 0;
describeWhere(isRoot ? undefined : 'mounting needs root on Linux', 'a data folder on a full disk', () => {
  it('is named, and nothing is left in it', () => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=4k', 'tmpfs', dataDir]);
    try {
      writeFileSync(join(dataDir, 'all'), Buffer.alloc(4096));
      expect(() => lockDataFolder(dataDir)).toThrow(`The disk of the data folder ${dataDir} is full.`);
      expect(readdirSync(dataDir)).toEqual(['all']);
    } finally {
      execFileSync('umount', [dataDir]);
    }
  });
});
