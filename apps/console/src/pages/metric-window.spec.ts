import { expect, it } from '@jest/globals';
import { validateWindow } from './metric-window.js';

it('takes the windows of the API from an address, and nothing else', () => {
  expect(validateWindow({ window: 'last_7d', other: 'x' })).toEqual({ window: 'last_7d' });
  for (const window of ['', 'LAST_7D', 'last_7days', '7', undefined, null, ['last_7d']])
    expect(validateWindow({ window })).toEqual({});
});
