import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readVersion } from './version.js';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'atoll-version-'));
  mkdirSync(join(root, 'dist'));
  writeFileSync(join(root, 'package.json'), '{ "version": "0.1.0" }');
});
afterEach(() => rmSync(root, { recursive: true }));

it('the version of what is built names the commit, where the build knew it, and that of the sources does not', () => {
  const [built, source] = [join(root, 'dist/libs/service/src'), join(root, 'libs/service/src')];
  expect(readVersion(built)).toBe('0.1.0');
  writeFileSync(join(root, 'dist/commit'), '94c93db1');
  expect([readVersion(built), readVersion(source)]).toEqual(['0.1.0+94c93db1', '0.1.0']);
  writeFileSync(join(root, 'dist/commit'), '');
  expect(readVersion(built)).toBe('0.1.0');
});
