import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { newId } from './new-id.js';

afterEach(() => {
  jest.restoreAllMocks();
});

const timeOf = (id: string) => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);

describe('newId', () => {
  it('is a UUID of version 7 that tells when it was made', () => {
    // Later than the one before: specs that set the clock ahead may have made some in this process.
    const nowMs = timeOf(newId()) + 1;
    jest.spyOn(Date, 'now').mockReturnValue(nowMs);
    const id = newId();
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(timeOf(id)).toBe(nowMs);
  });

  it('is greater than the one before, for as many as may be made within one millisecond', () => {
    jest.spyOn(Date, 'now').mockReturnValue(Date.now());
    const ids = Array.from({ length: 20_000 }, newId);
    expect(ids).toEqual([...ids].sort());
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('is greater than the one before when the clock steps back', () => {
    const first = newId();
    jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 3_600_000);
    expect(newId() > first).toBe(true);
  });
});
