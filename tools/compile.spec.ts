import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-compile-'));
  mkdirSync(join(folder, 'libs'));
  copyFileSync(join(root, '.swcrc'), join(folder, '.swcrc'));
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  write('libs/one.ts', 'export const one: number = 1;\n');
  write('libs/two.ts', 'export const two: number = 2;\n');
  compile();
});
afterEach(() => rmSync(folder, { recursive: true }));

const compile = () => execFileSync(process.execPath, [join(root, 'tools/compile.ts')], { cwd: folder });
const write = (path: string, text: string) => writeFileSync(join(folder, path), text);
const read = (path: string) => readFileSync(join(folder, path), 'utf8');

it('compiles what ships, with source maps', () => {
  write('libs/one.spec.ts', 'export {};\n');
  compile();
  expect(read('dist/libs/one.js')).toBe('export const one = 1;\n\n//# sourceMappingURL=one.js.map');
  expect(JSON.parse(read('dist/libs/one.js.map'))).toMatchObject({ sources: ['../../libs/one.ts'] });
  expect(existsSync(join(folder, 'dist/libs/one.spec.js'))).toBe(false);
});

it('compiles again only what has changed', () => {
  write('dist/libs/one.js.map', 'kept');
  write('dist/libs/two.js.map', 'kept');
  write('libs/two.ts', 'export const two: number = 22;\n');
  compile();
  expect(read('dist/libs/two.js')).toContain('two = 22');
  expect(read('dist/libs/two.js.map')).not.toBe('kept');
  expect(read('dist/libs/one.js.map')).toBe('kept');
});

it('compiles again where the output was written over or removed', () => {
  write('dist/libs/one.js', 'a bundle');
  rmSync(join(folder, 'dist/libs/two.js'));
  compile();
  expect(read('dist/libs/one.js')).toContain('one = 1');
  expect(read('dist/libs/two.js')).toContain('two = 2');
});

it('compiles all again where the rules have changed', () => {
  const rules = JSON.parse(read('.swcrc')) as object;
  write('.swcrc', JSON.stringify({ ...rules, sourceMaps: false }));
  compile();
  expect(read('dist/libs/one.js.map')).toBe('');
});

it('compiles all again where a source has come, to which an import may lead', () => {
  write('dist/libs/one.js.map', 'of before');
  write('libs/three.ts', 'export const three: number = 3;\n');
  compile();
  expect(read('dist/libs/one.js.map')).not.toBe('of before');
  expect(read('dist/libs/three.js')).toContain('three = 3');
});

it('leaves no output of a source that is gone', () => {
  rmSync(join(folder, 'libs/two.ts'));
  compile();
  const files = ['one.js', 'two.js', 'two.js.map'];
  expect(files.filter((file) => existsSync(join(folder, 'dist/libs', file)))).toEqual(['one.js']);
});

it('goes on from a record that was broken off while it was written', () => {
  write('dist/compiled.json', '{');
  compile();
  expect(JSON.parse(read('dist/compiled.json'))).toMatchObject({ 'libs/one.ts': expect.any(String) });
});
