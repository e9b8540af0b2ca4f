import { randomUUID } from 'node:crypto';
import vm from 'node:vm';
import { expect, it } from '@jest/globals';

// This runs in Jest's environment, so `vm` is as `jest-environment.ts` has left it, and as Jest itself uses it.
const load = (source: string, filename = `/node_modules/${randomUUID()}.js`): Record<string, unknown> => {
  const exports = {};
  vm.compileFunction(source, ['exports'], { filename, parsingContext: vm.createContext() }).call(undefined, exports);
  return exports;
};

it('a module that was compiled before runs anew, in the context of whoever loads it', () => {
  const filename = `/node_modules/${randomUUID()}.js`;
  const source = 'let calls = 0; exports.call = () => (calls += 1); exports.list = [];';
  const one = load(source, filename) as { call(): number; list: unknown[] };
  const other = load(source, filename) as { call(): number; list: unknown[] };
  expect([one.call(), one.call(), other.call()]).toEqual([1, 2, 1]);
  expect(one.list.constructor).not.toBe(other.list.constructor);
});

it('a module whose source has changed is compiled again', () => {
  const filename = `/node_modules/${randomUUID()}.js`;
  expect([load('exports.is = 1', filename), load('exports.is = 2', filename)]).toEqual([{ is: 1 }, { is: 2 }]);
});

it('a fault is where it stands in the file, on the first line too', () => {
  const { faults } = load(`exports.faults = [new Error('first'),\n  new Error('second')];`, '/node_modules/faulty.js') as {
    faults: Error[];
  };
  expect(faults.map(({ stack }) => /faulty\.js:\d+:\d+/.exec(stack ?? '')?.[0])).toEqual(['faulty.js:1:19', 'faulty.js:2:3']);
});

it('a module with a syntax error is refused as such', () => {
  expect(() => load('exports.is = ;')).toThrow(expect.objectContaining({ name: 'SyntaxError' }));
});

it('an ES module that was compiled before runs anew, and another one of the same name and length is compiled', async () => {
  const identifier = `file:///${randomUUID()}.mjs`;
  const context = vm.createContext({ loaded: [] });
  for (const source of ['loaded.push(1)', 'loaded.push(1)', 'loaded.push(2)']) {
    const module = new vm.SourceTextModule(source, { context, identifier });
    await module.link(() => Promise.reject(new Error('imports nothing')));
    await module.evaluate();
  }
  expect(context.loaded).toEqual([1, 1, 2]);
});
