import { describe, expect, it } from '@jest/globals';
import { validateDeadLetters, validateProcesses } from './operation-search.js';

describe('the address of a page of the operator', () => {
  it('keeps what it means, so that a link shows what its sender saw', () => {
    const processes = { kind: 'waiting', state: 'to_temporal', page: '3' };
    expect(validateProcesses(processes)).toEqual(processes);
    const letters = { service: 'billing', cursor: '1790000000000000_0199f3c2-6a5b-7c11-9d6f-2b1f0c9c7a10' };
    expect(validateDeadLetters(letters)).toEqual(letters);
  });

  it.each([
    { kind: 'stuck', state: 'a b', page: '0' },
    { kind: 7, state: '<b>', page: '-1' },
    { service: 'root', cursor: "1_'; DROP TABLE" },
    { service: '', cursor: '' },
  ])('drops what means nothing: %j', (search) => {
    expect([validateProcesses(search), validateDeadLetters(search)]).toEqual([{}, {}]);
  });
});
