import { expect, it } from '@jest/globals';
import { changeOfSameDays } from './same-days.js';

const days = (...costs: string[]) => costs.map((cost) => ({ cost, partial: false }));
const running = { cost: '1', partial: true };

it('the days of this month that have ended are compared with the same days of last month', () => {
  expect(changeOfSameDays([...days('10', '10'), running], days('10', '10', '10', '10'))).toBe(0);
  expect(changeOfSameDays([...days('9', '6'), running], days('5', '5', '10'))).toBe(50);
});

it('a day that last month does not have is left out', () => {
  expect(changeOfSameDays(days('4', '4', '4'), days('4', '4'))).toBe(0);
});

it('on the first day of a month, and after a month that cost nothing, there is nothing to compare', () => {
  expect(changeOfSameDays([running], days('10', '10'))).toBeNull();
  expect(changeOfSameDays(days('10'), days('0', '10'))).toBeNull();
});
