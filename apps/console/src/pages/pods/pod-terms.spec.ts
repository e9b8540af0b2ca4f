import { expect, it } from '@jest/globals';
import fc from 'fast-check';
import { emptyTerms, podBody } from './pod-terms.js';

const terms = { ...emptyTerms, name: 'job', image: 'python:3.13', subscription: '7' };

it('leaves out what was left empty', () => {
  const body = {
    team_id: 'team',
    subscription_id: '7',
    name: 'job',
    image: 'python:3.13',
    vgpus: 1,
    restart: 'always',
  };
  expect(podBody('team', terms)).toEqual(body);
  const full = { ...terms, command: 'python train.py', ports: ' 80, 443\n8080 ', volume: '5' };
  expect(podBody('team', full)).toEqual({
    ...body,
    command: ['/bin/sh', '-c', 'python train.py'],
    ports: [80, 443, 8080],
    volumes: [{ volume_id: '5', path: '/data' }],
  });
});

it('law: variables are read as they were written, whatever their values hold', () => {
  const name = fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,10}$/);
  const value = fc.string({ maxLength: 20 }).filter((text) => !/[\r\n]/.test(text));
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(name, value), { selector: ([key]) => key, minLength: 1 }), (pairs) => {
      const variables = pairs.map(([key, each]) => `${key}=${each}`).join('\n\n');
      expect(podBody('team', { ...terms, variables }).env).toEqual(Object.fromEntries(pairs));
    }),
  );
});
