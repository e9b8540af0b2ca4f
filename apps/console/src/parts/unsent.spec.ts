import { expect, it } from '@jest/globals';
import { forgetUnsent, isUnsent, keepUnsent, unsentOf } from './unsent.js';

const form = '/profile Edit your profile';
const typed = {
  ...{ form, userId: 'ada', values: { name: 'Ada' }, touched: new Set(['name']) },
  header: { 'Idempotency-Key': 'k' },
};

it('what stood in a form is there for its user, in that form, until it is forgotten', () => {
  keepUnsent(typed);
  expect([unsentOf('ada', '/profile Another form'), unsentOf('ada', form), isUnsent()]).toEqual([
    undefined,
    typed,
    true,
  ]);
  forgetUnsent();
  expect([unsentOf('ada', form), isUnsent()]).toEqual([undefined, false]);
});

it('is forgotten once another user opens a form', () => {
  keepUnsent(typed);
  expect(unsentOf('bob', form)).toBeUndefined();
  expect([unsentOf('ada', form), isUnsent()]).toEqual([undefined, false]);
});
