import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { AskAgain } from './ask-again.js';

type Asked = PromiseWithResolvers<string>;

let asked: Asked[];
let asking: AskAgain;
let answer: Promise<string>;
const ask = () => {
  const one = Promise.withResolvers<string>();
  asked.push(one);
  return one.promise;
};
beforeEach(() => {
  jest.useFakeTimers();
  asked = [];
  asking = new AskAgain({ silentMs: 1_000, most: 2 });
  answer = asking.run(ask);
});
afterEach(() => void jest.useRealTimers());

async function afterSilence(): Promise<{ first: Asked; second: Asked }> {
  await jest.advanceTimersByTimeAsync(999);
  expect(asked).toHaveLength(1);
  await jest.advanceTimersByTimeAsync(1);
  await jest.advanceTimersByTimeAsync(60_000);
  const [first, second, third] = asked;
  if (!first || !second || third) throw new Error(`It was asked ${asked.length} times.`);
  return { first, second };
}

it('asks once where there is an answer in time, and where it fails in time', async () => {
  asked[0]?.resolve('good');
  expect(await answer).toBe('good');
  const failing = asking.run(() => {
    asked.push(Promise.withResolvers());
    return Promise.reject(new Error('busy'));
  });
  await expect(failing).rejects.toThrow('busy');
  await jest.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveLength(2);
});

it('asks once more after silence, and takes the second answer where the first never comes', async () => {
  const { second } = await afterSilence();
  second.resolve('second');
  expect(await answer).toBe('second');
});

it('takes the first answer, however late, where the second fails', async () => {
  const { first, second } = await afterSilence();
  second.reject(new Error('busy'));
  await jest.advanceTimersByTimeAsync(1);
  first.resolve('first');
  expect(await answer).toBe('first');
});

it('throws what the first throws where both fail', async () => {
  const { first, second } = await afterSilence();
  second.reject(new Error('busy'));
  first.reject(new Error('too late'));
  await expect(answer).rejects.toThrow('too late');
});

it('asks others once more also when all of these have failed', async () => {
  const others = [1, 2].map(() => asking.run(ask));
  const failures = Promise.allSettled([answer, ...others]);
  await jest.advanceTimersByTimeAsync(1_000);
  expect(asked).toHaveLength(3 + 2);
  for (const one of asked.splice(0)) one.reject(new Error('busy'));
  await failures;
  const later = asking.run(ask);
  await jest.advanceTimersByTimeAsync(1_000);
  expect(asked).toHaveLength(2);
  asked[1]?.resolve('again');
  expect(await later).toBe('again');
});

it('asks so many once more at once, and others when one of these is answered', async () => {
  const others = [1, 2, 3].map(() => asking.run(ask));
  await jest.advanceTimersByTimeAsync(1_000);
  expect(asked).toHaveLength(4 + 2);
  for (const one of asked.splice(0)) one.resolve('slow');
  expect(await Promise.all([answer, ...others])).toEqual(Array(4).fill('slow'));
  const later = asking.run(ask);
  await jest.advanceTimersByTimeAsync(1_000);
  asked[1]?.resolve('again');
  expect(await later).toBe('again');
});
