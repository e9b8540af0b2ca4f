import { describe, expect, it } from '@jest/globals';
import { ApiKeyEntity } from '../model/api-key.entity.js';
import { isLive } from './api-key.service.js';
import { settleTerms } from './key-terms.js';

const nowMs = Date.parse('2026-10-01T00:00:00.000Z');
const dayMs = 24 * 60 * 60 * 1000;
const at = (ms: number) => ({ expiry_date: new Date(ms).toISOString() });

describe('the life of a key', () => {
  it('is 90 days to the millisecond where nothing is asked', () => {
    const { expiryDate, isExpiryAsked, graceSeconds } = settleTerms({}, nowMs);
    expect([expiryDate.getTime(), isExpiryAsked, graceSeconds]).toEqual([nowMs + 90 * dayMs, false, 0]);
  });

  it.each([
    [nowMs + 1, 'accepted'],
    [nowMs, 'expiry_date must be in the future.'],
    [nowMs - 1, 'expiry_date must be in the future.'],
    [nowMs + 365 * dayMs, 'accepted'],
    [nowMs + 365 * dayMs + 1, 'expiry_date must be at most 365 days ahead.'],
  ])('that is asked to end at %d is %s', (expiryMs, outcome) => {
    const settle = () => settleTerms(at(expiryMs), nowMs);
    if (outcome === 'accepted') expect(settle()).toMatchObject({ expiryDate: new Date(expiryMs), isExpiryAsked: true });
    else expect(settle).toThrow(outcome);
  });

  it.each([
    [new Date(nowMs + 1), null, true],
    [new Date(nowMs), null, false],
    [new Date(nowMs - 1), null, false],
    [null, null, true],
    [new Date(nowMs + 1), new Date(nowMs - 1), false],
    [null, new Date(nowMs), false],
  ])('that ends at %s and was revoked at %s goes on: %s', (expiryDate, revokedAt, live) => {
    expect(isLive(Object.assign(new ApiKeyEntity(), { expiryDate, revokedAt }), nowMs)).toBe(live);
  });
});
