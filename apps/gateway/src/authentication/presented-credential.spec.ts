import { describe, expect, it } from '@jest/globals';
import { createApiKey } from '@atoll/api-keys';
import type { AppError } from '@atoll/errors';
import { presentedCredential } from './presented-credential.js';

const key = createApiKey();
const other = createApiKey();
const refusal = expect.objectContaining({ code: 'unauthenticated' }) as unknown as AppError;

describe('the key that a request presents', () => {
  it.each<[string, string[]]>([
    ['as Bearer', ['Authorization', `Bearer ${key}`]],
    ['as bearer in any case', ['authorization', `bEaReR  ${key} `]],
    ['as Bearer, with tabs for spaces', ['Authorization', `Bearer\t${key}\t`]],
    ['as x-api-key', ['X-Api-Key', key]],
    ['twice the same', ['Authorization', `Bearer ${key}`, 'x-api-key', key]],
    ['in a header sent twice', ['Authorization', `Bearer ${key}`, 'Authorization', `Bearer ${key}`]],
    ['among other headers', ['Host', 'x', 'x-request', other, 'x-api-key', key, 'Cookie', other]],
  ])('%s', (_name, headers) => expect(presentedCredential(headers)).toBe(key));

  it('is none where no header is a credential', () => {
    expect(presentedCredential(['Host', 'x', 'Cookie', key, 'Proxy-Authorization', `Bearer ${key}`])).toBeNull();
  });

  it.each<[string, string[]]>([
    ['an empty Authorization', ['Authorization', '']],
    ['Bearer without a key', ['Authorization', 'Bearer ']],
    ['another scheme', ['Authorization', `Basic ${key}`]],
    ['a key without a scheme', ['Authorization', key]],
    ['an empty x-api-key', ['x-api-key', '']],
    ['an empty one beside a good one', ['Authorization', `Bearer ${key}`, 'x-api-key', '']],
    ['two keys in one header', ['x-api-key', `${key}, ${key}`]],
    ['a typing error', ['x-api-key', `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`]],
    [
      'an access token where a key belongs, with a part too many',
      ['x-api-key', 'eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl.e30'],
    ],
    ['an access token of 5 KB', ['Authorization', `Bearer eyJ${'a'.repeat(5000)}.e30.e30`]],
    ['8 KB', ['Authorization', `Bearer ${'a'.repeat(8192)}`]],
    ['two different', ['Authorization', `Bearer ${key}`, 'x-api-key', other]],
    ['two different in one header sent twice', ['Authorization', `Bearer ${key}`, 'authorization', `Bearer ${other}`]],
  ])('is refused unread: %s', (_name, headers) => expect(() => presentedCredential(headers)).toThrow(refusal));

  it('without its scheme gets the header as it must be, and no refusal repeats a key', () => {
    const messageOf = (...headers: string[]): string => {
      try {
        return `accepted ${presentedCredential(headers)}`;
      } catch (error) {
        return (error as Error).message;
      }
    };
    const send = 'Send Authorization: Bearer <API_KEY>, or x-api-key: <API_KEY>.';
    expect(messageOf('Authorization', key)).toBe(
      `The Authorization header has the API key without its scheme. ${send}`,
    );
    expect(messageOf('Authorization', `Basic ${key}`)).toBe(
      `The Authorization header has another form than Bearer <API_KEY>. ${send}`,
    );
    for (const headers of [
      ['Authorization', key],
      ['Authorization', `Basic ${key}`],
      ['x-api-key', `${key}x`],
    ])
      expect(messageOf(...headers)).not.toContain(key.slice(4));
  });
});
