import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { AppError } from '@atoll/errors';
import type { Rpc } from '@atoll/rpc';
import type { GatewaySettings } from '../gateway-options.js';
import { PepperCheck } from './pepper-check.js';

let answer: () => { is_same: boolean };
let errors: unknown[];
let check: PepperCheck;
beforeEach(() => {
  jest.useFakeTimers();
  errors = [];
  jest.spyOn(Logger.prototype, 'error').mockImplementation((line: unknown) => void errors.push(line));
  const rpc = { call: () => Promise.resolve().then(answer) } as unknown as Rpc;
  check = new PepperCheck(rpc, { keyPepper: 'a pepper for specs', deadlineMs: 1_000 } as GatewaySettings);
});
afterEach(() => {
  check.onModuleDestroy();
  jest.restoreAllMocks();
  jest.useRealTimers();
});

const unavailable = () => {
  throw new AppError('unavailable', 'Nobody answers.');
};
const nextLook = () => jest.advanceTimersByTimeAsync(5_000);

it('a gateway has the pepper of teams until teams says otherwise, and again once it has', async () => {
  answer = unavailable;
  check.onApplicationBootstrap();
  await nextLook();
  expect([check.reason(), errors]).toEqual([null, []]);
  answer = () => ({ is_same: false });
  await nextLook();
  answer = unavailable;
  await nextLook();
  expect([check.reason(), errors]).toEqual([
    'ATOLL_KEY_PEPPER differs from that of teams',
    [{ message: expect.stringContaining('Set the same one in both.') }],
  ]);
  answer = () => ({ is_same: true });
  await nextLook();
  expect(check.reason()).toBeNull();
});

it('what lasts is logged once a minute, and at once where it begins again', async () => {
  answer = () => ({ is_same: false });
  check.onApplicationBootstrap();
  await nextLook();
  await nextLook();
  expect(errors).toHaveLength(1);
  answer = () => ({ is_same: true });
  await nextLook();
  answer = () => ({ is_same: false });
  await nextLook();
  expect(errors).toHaveLength(2);
});
