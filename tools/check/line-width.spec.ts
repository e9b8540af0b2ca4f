import { describe, expect, it } from '@jest/globals';
import { wideLines } from './line-width.js';

const words = 'word '.repeat(23);
/** 121 columns with what stands before it, of `before` columns. */
const wide = (before: string) => (before + words).padEnd(121, 'x');

describe('a line of more than 120 columns', () => {
  it.each([
    ['a.ts', '/** '],
    ['a.tsx', ' * '],
    ['a.ts', '  // '],
    ['a.ts', 'a(b); // '],
    ['a.css', '/* '],
    ['Dockerfile', '# '],
    ['a.yml', '  # '],
    ['a.md', ''],
    ['a.md', '- '],
    ['a.md', '> '],
  ])('of %s is refused where it begins with "%s"', (path, before) => {
    const line = wide(before);
    expect(wideLines(path, `\n${line}\n${line.slice(0, 120)}\n`)).toEqual([2]);
  });

  it.each([
    ['a.ts', 'const text = `'],
    ['a.ts', "it('shows // "],
    ['a.ts', '// oxlint-disable-next-line '],
    ['a.ts', '/// '],
    ['a.sh', 'echo '],
    ['a.yml', '#   '],
    ['a.md', '## '],
    ['a.md', '| '],
    ['a.md', '<p>'],
    ['a.md', '[a]: '],
    ['a.md', '```sh\n'],
  ])('of %s is left where it begins with "%s"', (path, before) => expect(wideLines(path, wide(before))).toEqual([]));

  it('is left where it has no place to wrap', () => {
    for (const one of [`https://${'x'.repeat(120)}`, `\`${words}\``, `[x](${'x'.repeat(120)})`]) {
      expect(wideLines('a.ts', ` * - ${one}`)).toEqual([]);
      expect(wideLines('a.md', `1. ${one}`)).toEqual([]);
      expect(wideLines('a.md', `1. Read ${one}`)).toEqual([1]);
    }
  });
});
