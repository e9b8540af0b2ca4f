import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { newId } from '@atoll/database';
import { TeamsFixture } from '../teams-fixture.js';
import { TokenBuckets, type BucketName } from './token-buckets.js';

let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start();
});
afterAll(() => fixture.stop());

const dayMs = 86_400_000;
/** Three, and half a day more: what is stored is rounded to the millisecond, in which a spec may take all. */
const rate = { refillMs: dayMs, capacityMs: 3.5 * dayMs };
const buckets = () => fixture.get(TokenBuckets);
async function takeAll(name: BucketName): Promise<number> {
  for (let count = 0; ; count += 1) if (!(await buckets().take(name, rate))) return count;
}

it('a bucket holds no more than it has room for, however long nobody took of it', async () => {
  const name = [newId(), 'what'] as const;
  expect(await takeAll(name)).toBe(3);
  await fixture.query(`UPDATE log_in_bucket SET full_at = full_at - interval '30 days'`);
  expect(await takeAll(name)).toBe(3);
  await fixture.query(`UPDATE log_in_bucket SET full_at = full_at - interval '1 day'`);
  expect(await takeAll(name)).toBe(1);
});

it('is of whom and what it is named by; what is given back is there again', async () => {
  const [one, other] = [newId(), newId()];
  expect(await takeAll([one, 'what'])).toBe(3);
  expect(await takeAll([one, 'else'])).toBe(3);
  expect(await takeAll([other, 'what'])).toBe(3);
  await buckets().giveBack([one, 'what'], rate);
  expect([await takeAll([one, 'else']), await takeAll([other, 'what']), await takeAll([one, 'what'])]).toEqual([
    0, 0, 1,
  ]);
});
