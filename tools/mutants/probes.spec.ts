import { expect, it } from '@jest/globals';
import ts from 'typescript';
import { probeAt, withProbes } from './probes.js';

const text = `const a = () => 1;
class B {
  c = a() > 0;
  constructor() {
    this.c = false;
  }
  d(at = 2) {
    return [1].map((each) => each + at).filter((each) => { return each > 3; });
  }
}`;
const file = ts.createSourceFile('a.ts', text, ts.ScriptTarget.Latest, true);
const probeOf = (what: string) => probeAt(file, text.indexOf(what));

it('a probe is at the begin of the innermost function with a body around a place', () => {
  expect(text.slice(probeOf('this.c')).trimStart()).toMatch(/^this\.c = false/);
  expect(text.slice(probeOf('each + at')).trimStart()).toMatch(/^return \[1\]/);
  expect(text.slice(probeOf('each > 3')).trimStart()).toMatch(/^return each > 3/);
  expect([probeOf('1;'), probeOf('a() > 0'), probeOf('2)')]).toEqual([0, 0, 0]);
});

it('a file with probes records each function that has run, and that it was loaded', () => {
  const ran: string[] = [];
  const one = `function twice(a) { return 2 * a; } function never() { return 1; } twice(3);`;
  const source = ts.createSourceFile('b.ts', one, ts.ScriptTarget.Latest, true);
  const [twice, never] = ['2 *', '1; }'].map((what) => probeAt(source, one.indexOf(what)));
  Object.assign(globalThis, { atollMutantsRan: (probe: string) => ran.push(probe) });
  (0, eval)(withProbes('b.ts', one, [0, twice!, never!, 0]));
  Reflect.deleteProperty(globalThis, 'atollMutantsRan');
  expect(ran).toEqual([`b.ts:${twice}`, 'b.ts:0']);
});
