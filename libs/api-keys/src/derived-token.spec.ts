import { describe, expect, it } from '@jest/globals';
import { DerivedTokens } from './derived-token.js';

const id = '01890000-0000-7000-8000-00000000000c';
const tokens = new DerivedTokens('a pepper for specs', 'one purpose');
const token = tokens.make(id, 7);

describe('a token', () => {
  it('says of which row it is, and which of its tokens', () => {
    expect(tokens.read(token)).toEqual({ id, generation: 7 });
  });

  it.each([
    '',
    'x',
    token.slice(0, -1),
    `${token}.`,
    `${token}A`,
    `${token.slice(0, -1)}\u00e9`,
    `${token.slice(0, -2)}\u00e9`,
    token.replace('.7.', '.8.'),
    token.replace('.7.', '.07.'),
    token.toUpperCase(),
    new DerivedTokens('another pepper', 'one purpose').make(id, 7),
    new DerivedTokens('a pepper for specs', 'another purpose').make(id, 7),
  ])('that was not made here, for this purpose, is none: %s', (other) => {
    expect(tokens.read(other)).toBeUndefined();
  });
});
