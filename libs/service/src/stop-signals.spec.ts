import { expect, it, jest } from '@jest/globals';
import { EventEmitter } from 'node:events';
import { onStopSignals } from './stop-signals.js';

it('stops once at the signals of one Ctrl-C, and by force at another one', () => {
  jest.useFakeTimers();
  const signals = new EventEmitter();
  const [stop, force] = [jest.fn(), jest.fn()];
  onStopSignals(stop, force, signals);
  signals.emit('SIGINT', 'SIGINT');
  // npm passes on what the terminal has sent already.
  signals.emit('SIGINT', 'SIGINT');
  jest.advanceTimersByTime(999);
  signals.emit('SIGTERM', 'SIGTERM');
  expect([stop.mock.calls, force.mock.calls.length]).toEqual([[['SIGINT']], 0]);
  jest.advanceTimersByTime(1);
  signals.emit('SIGTERM', 'SIGTERM');
  expect([stop.mock.calls.length, force.mock.calls.length]).toEqual([1, 1]);
});
