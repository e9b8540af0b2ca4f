import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { expand, parseLine } from './command-line.js';

const values: Record<string, string> = { HOME: '/root', NAME: 'two words', '?': '3' };
const words = (line: string) => {
  const parsed = parseLine(line);
  return 'error' in parsed
    ? parsed.error
    : parsed.commands.map(({ texts }) => texts.map((text) => expand(text, (name) => values[name] ?? '')));
};

it('law: words in single quotes come back as they are, whatever they hold', () => {
  const word = fc.string({ unit: 'grapheme', maxLength: 30 }).map((text) => text.replaceAll("'", ''));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 8 }), (given) => {
      expect(words(given.map((one) => `'${one}'`).join(' '))).toEqual([given]);
    }),
  );
});

it('law: any line at all is read or refused, in a time that grows with its length alone', () => {
  const anyLine = fc.oneof(fc.string({ maxLength: 2_000 }), fc.stringMatching(/^[ "'\\$a{};&|()]{0,2000}$/));
  fc.assert(fc.property(anyLine, (line) => expect(words(line)).toBeDefined()));
});

it('joins quoted and plain parts of a word, and expands variables as sh does', () => {
  expect(words('echo a"b c"\'$HOME\' "$HOME/x" ${NAME} $? $NONE.')).toEqual([
    ['echo', 'ab c$HOME', '/root/x', 'two words', '3', '.'],
  ]);
  expect(words('echo "\\$HOME" \\$HOME \\\\ $ # and a comment')).toEqual([['echo', '$HOME', '$HOME', '\\', '$']]);
});

it('tells commands apart by what joins them', () => {
  expect(parseLine('ls; pwd && id || false')).toEqual({
    commands: [
      { after: ';', texts: ['ls'] },
      { after: ';', texts: ['pwd'] },
      { after: '&&', texts: ['id'] },
      { after: '||', texts: ['false'] },
    ],
  });
});

it.each(['ls | wc', 'ls > file', 'echo $(id)', 'echo `id`', 'echo "$(id)"', 'sleep 9 &', 'echo "open', '(ls)'])(
  'refuses %s with a sentence',
  (line) => {
    expect(words(line)).toMatch(/simulated|not closed/);
  },
);
