import { expect, it } from '@jest/globals';
import { Batched } from './batched.js';

it('what is asked for in one turn is asked at once, and each gets its own answer', async () => {
  const asked: (readonly number[])[] = [];
  const doubled = new Batched<number, number>((numbers) => {
    asked.push(numbers);
    return Promise.resolve(numbers.map((number) => 2 * number));
  });
  expect(await Promise.all([1, 2, 3].map((number) => doubled.ask(number)))).toEqual([2, 4, 6]);
  expect(await doubled.ask(4)).toBe(8);
  expect(asked).toEqual([[1, 2, 3], [4]]);
});

it('of very many no statement has more than 500, and a failure is told those who asked in it alone', async () => {
  const sizes: number[] = [];
  const some = new Batched<number, number>((numbers) => {
    sizes.push(numbers.length);
    return sizes.length === 1 ? Promise.reject(new Error('It is away.')) : Promise.resolve(numbers);
  });
  const answers = await Promise.all(
    Array.from({ length: 1_200 }, (_, number) => some.ask(number).catch((error: Error) => error.message)),
  );
  expect(sizes).toEqual([500, 500, 200]);
  expect(answers).toEqual(Array.from({ length: 1_200 }, (_, number) => (number < 500 ? 'It is away.' : number)));
});
