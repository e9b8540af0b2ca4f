import { describe, expect, it } from '@jest/globals';
import { parseAddresses } from './nats-address.js';

describe('the address of a NATS', () => {
  it('may be one or several, with a scheme or without', () => {
    expect(parseAddresses('127.0.0.1:4222')).toEqual({ servers: ['nats://127.0.0.1:4222'] });
    expect(parseAddresses(['nats://a:1', '[::1]:2'])).toEqual({ servers: ['nats://a:1', 'nats://[::1]:2'] });
  });

  it('may hold a user and a password, or a token, with what a URL escapes', () => {
    expect(parseAddresses('nats://me:p%40ss@host:1')).toEqual({ servers: ['nats://host:1'], user: 'me', pass: 'p@ss' });
    expect(parseAddresses(['nats://s3cret@a', 'nats://b'])).toEqual({
      servers: ['nats://a', 'nats://b'],
      token: 's3cret',
    });
  });

  it.each(['', 'http://b', 'nats://', 'nats://b:99999', 'nats://me:1/s3cret@b', 'nats://me:s3cret%@b'])(
    'is refused as %j, by its place in the list and in words that do not repeat it',
    (wrong) => {
      expect(() => parseAddresses(['nats://a', wrong])).toThrow(
        /^NATS_URL must be one or more URLs .*, separated by commas; entry 2 is not\.$/,
      );
      expect(() => parseAddresses(['nats://a', wrong])).not.toThrow('s3cret');
    },
  );
});
