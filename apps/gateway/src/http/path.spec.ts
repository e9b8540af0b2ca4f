import { describe, expect, it } from '@jest/globals';
import type { FastifyRequest } from 'fastify';
import { mustEnd } from '@atoll/testing';
import { loggablePath } from './path.js';

const logged = (url: string): string => loggablePath({ raw: { url } } as FastifyRequest);

describe('the path for the log', () => {
  it('leaves out a segment with percent-encoding, but for colons', () => {
    expect(logged('/api/%zz/a%3Ab/%61%3a/x?y=%7a')).toBe('/api/[encoded]/a:b/[encoded]/x');
  });

  it('is as it came up to 2 KiB, and ends before the first segment that has no room', () => {
    const whole = `/api/${'a'.repeat(2048 - 5)}`;
    expect(logged(whole)).toBe(whole);
    expect(logged(`/api/x/${'a'.repeat(2048)}/y`)).toBe('/api/x/[cut]');
    expect(logged(`${'/api'.repeat(512)}/y`)).toBe(`${'/api'.repeat(512)}/[cut]`);
    expect(logged('a'.repeat(2049))).toBe('[cut]');
  });

  it('is found however long a segment is', () => {
    expect(mustEnd(() => logged(`/${'a'.repeat(1_000_000)}/%41`))).toBe('/[cut]');
  });
});
