import { describe, expect, it } from '@jest/globals';
import { readReplicas } from './replicas.js';

const services = ['teams', 'billing'];

describe('how many processes of a service there are', () => {
  it('is one of each unless said', () => {
    expect([...readReplicas('', services)]).toEqual([
      ['teams', 1],
      ['billing', 1],
    ]);
    expect([...readReplicas(' billing=16 ', services)]).toEqual([
      ['teams', 1],
      ['billing', 16],
    ]);
    expect([...readReplicas('teams=2,billing=3', services).values()]).toEqual([2, 3]);
  });

  it.each([
    'teams',
    'teams=',
    'teams=abc',
    'teams=0',
    'teams=-1',
    'teams=1.5',
    'teams=17',
    'team=3',
    'gateway=2',
    'teams=2 billing=2',
    '=2',
  ])('is not said by %s', (text) =>
    expect(() => readReplicas(text, services)).toThrow(`of teams, billing, 1 to 16. This is not: ${text}`),
  );
});
