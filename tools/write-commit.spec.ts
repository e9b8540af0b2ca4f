import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeWhere } from '@atoll/testing';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-commit-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const tool = join(import.meta.dirname, 'write-commit.ts');
const build = (cwd: string, env: Record<string, string> = {}) =>
  spawnSync(process.execPath, [tool], { cwd, env: { PATH: process.env.PATH, ...env }, encoding: 'utf8' });
const written = (cwd: string) => readFileSync(join(cwd, 'dist/commit'), 'utf8');

it('the commit of an image is the one that it is built with', () => {
  expect(build(folder, { ATOLL_COMMIT: '94c93db1' }).status).toBe(0);
  expect(written(folder)).toBe('94c93db1');
  expect(build(folder, { ATOLL_COMMIT: 'v1 of mine' })).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('ATOLL_COMMIT must be up to 40 letters, digits and hyphens.'),
  });
});

const lacking = spawnSync('git', ['--version']).error ? 'it needs git' : undefined;
describeWhere(lacking, 'in a repository', () => {
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@example.com', ...args], {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: folder },
    });

  it('the commit is its latest; none without git, and in a folder that only lies in it', () => {
    git('init', '--quiet');
    build(folder);
    expect(written(folder)).toBe('');
    git('commit', '--quiet', '--allow-empty', '--message=x');
    build(folder);
    expect(written(folder)).toMatch(/^[0-9a-f]{8}$/);
    expect(git('rev-parse', 'HEAD')).toContain(written(folder));
    build(folder, { PATH: '/nowhere' });
    expect(written(folder)).toBe('');
    mkdirSync(join(folder, 'unpacked'));
    build(join(folder, 'unpacked'));
    expect(written(join(folder, 'unpacked'))).toBe('');
  });
});
