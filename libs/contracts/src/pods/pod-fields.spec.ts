import { describe, expect, it } from '@jest/globals';
import { AppError } from '@atoll/errors';
import { validateWire } from '../validate-wire.js';
import { CreatePod } from './pod.js';

/** What is wrong with a pod that is otherwise well. */
function faults(more: object): string[] {
  const pod = { team_id: '01a1fbfa-c6f6-77e9-aebd-42be3c465757', subscription_id: '1', name: 'job', image: 'nginx' };
  try {
    validateWire(CreatePod, { ...pod, ...more });
    return [];
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return (error.details.errors ?? []).map(({ message }) => message);
  }
}

describe('environment variables', () => {
  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`A${at}`, '']));
  /** Names and values of so many bytes in all, in values that are short enough each. */
  const sized = (bytes: number) => {
    const [full, last] = [Array<string>(3).fill('x'.repeat(8_192)), 'é'.repeat(2_000)];
    const values = [...full, last, 'x'.repeat(bytes - 3 * 8_192 - 4_000 - 5)];
    return Object.fromEntries(values.map((value, at) => [`${'ABCDE'[at]}`, value]));
  };

  it.each([
    ['as many as there may be', many(200)],
    ['the longest name', { [`_${'a'.repeat(127)}`]: 'x' }],
    ['the longest value', { A: 'x'.repeat(8_192) }],
    ['the most in all', sized(32_768)],
    [
      'names that only look like reserved ones',
      { MY_LD_PRELOAD: 'x', CUDA_VISIBLE_DEVICES_OF_ALL: 'x', NVIDIA: 'x', LDX: 'x' },
    ],
    ['any well-formed text but U+0000', { A: '', B: 'a\nb \u0001 é 🚀' }],
  ])('may be %s', (_what, env) => {
    expect(faults({ env })).toEqual([]);
  });

  it.each([
    ['one more than there may be', many(201), 'env must hold at most 200 variables'],
    ['a longer name', { [`_${'a'.repeat(128)}`]: 'x' }, `"_${'a'.repeat(63)}" is none`],
    ['a longer value', { A: 'x'.repeat(8_193) }, 'env must have values of at most 8192 characters'],
    ['a byte more in all', sized(32_769), 'env must be at most 32 KiB in all'],
    ['U+0000', { A: 'a\u0000b' }, 'without U+0000; see A'],
    ['half a surrogate pair', { A: '\ud800' }, 'env must have values of well-formed Unicode; see A'],
    ['a name that begins with a digit', { '1A': 'x' }, '"1A" is none'],
    ['no name', { '': 'x' }, '"" is none'],
    ...[
      'NVIDIA_X',
      'nvidia_x',
      'LD_PRELOAD',
      'ld_preload',
      'ATOLL_X',
      'CUDA_VISIBLE_DEVICES',
      'cuda_visible_devices',
    ].map((name): [string, object, string] => [name, { [name]: 'x' }, `env must not set ${name}`]),
  ])('may not be %s', (_what, env, message) => {
    expect(faults({ env })).toEqual([expect.stringContaining(message)]);
  });
});

describe('a command', () => {
  it('has entries of 4096 characters at most, which may be empty and are of any well-formed text but U+0000', () => {
    const allowed = ['x'.repeat(4_096), '', '--text=a\nb'];
    expect(faults({ command: allowed })).toEqual([]);
    expect(faults({ command: Array<string>(256).fill('x') })).toEqual([]);
    const refused = [['x'.repeat(4_097)], ['a\u0000b'], ['\ud800'], Array<string>(257).fill('x'), [1], 'python'];
    for (const command of refused) expect(faults({ command })).toEqual([expect.stringContaining('command must')]);
  });
});

describe('ports', () => {
  it('are numbers from 1 to 65535, never texts', () => {
    expect(faults({ ports: [1, 65_535] })).toEqual([]);
    for (const port of [0, 65_536, 80.5, '80', null])
      expect(faults({ ports: [port] })).toEqual(['each entry of ports must be a whole number from 1 to 65535']);
  });
});

describe('an amount', () => {
  it('has two decimals at most, and is never a text', () => {
    for (const cpu of [0.1, 0.25, 512]) expect(faults({ cpu })).toEqual([]);
    for (const cpu of [0.09, 512.01, 1.005, 0.1 + 0.2, 1e-7, -1e-7, 9e-10, 1e21, -0.5, NaN, Infinity, '1', null, [1]])
      expect(faults({ cpu })).toEqual(['cpu must be a number from 0.1 to 512 with at most two decimals']);
  });
});
