import { expect, it } from '@jest/globals';
import { run } from './run.js';

it('runs a command that is given in words as they are, with the spaces in them', async () => {
  const print = 'process.stdout.write(JSON.stringify(process.argv.slice(1)))';
  const { ok, output } = await run([process.execPath, '--eval', print, '--', 'two words', 'one'], { capture: true });
  expect([ok, output]).toEqual([true, '["two words","one"]']);
});
