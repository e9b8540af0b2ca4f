import { beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { whitelistRanges } from '@atoll/contracts';
import { CredentialCache, type Verified } from './credential-cache.js';

interface LookUp {
  digest: string;
  resolve: (verified: Verified) => void;
  reject: (error: Error) => void;
}

function verified(userId: string, timezone = 'UTC'): Verified {
  const caller = {
    kind: 'user',
    userId,
    credential: { kind: 'key', id: 'key' },
    scope: 'user',
    platformAdmin: false,
    timezone,
    teams: [],
  } as const;
  return { caller, expiresAtMs: Infinity, ranges: null };
}

describe('the cache of credentials', () => {
  let nowMs: number;
  let lookUps: LookUp[];
  let cache: CredentialCache;
  beforeEach(() => {
    nowMs = 0;
    lookUps = [];
    cache = new CredentialCache(
      (digest) => new Promise((resolve, reject) => lookUps.push({ digest, resolve, reject })),
      { now: () => nowMs, shareMs: 2_000 },
    );
  });

  it('asks once for all who want the same at once, and not again for 5 s from when it asked', async () => {
    const asked = [cache.find('a'), cache.find('a'), cache.find('a')];
    nowMs = 1_000;
    lookUps[0]?.resolve(verified('ada'));
    expect((await Promise.all(asked)).map(({ caller }) => caller.userId)).toEqual(['ada', 'ada', 'ada']);
    nowMs = 4_999;
    expect(await cache.find('a')).toEqual(verified('ada'));
    expect(lookUps).toHaveLength(1);
    nowMs = 5_000;
    void cache.find('a');
    expect(lookUps).toHaveLength(2);
  });

  it('keeps no failure', async () => {
    const failing = [cache.find('a'), cache.find('a')];
    lookUps[0]?.reject(new Error('no such key'));
    for (const find of failing) await expect(find).rejects.toThrow('no such key');
    const again = cache.find('a');
    lookUps[1]?.resolve(verified('ada'));
    expect(await again).toEqual(verified('ada'));
  });

  it('gives the failure of a look-up to nobody who comes late: they have one of their own', async () => {
    const early = [cache.find('a')];
    nowMs = 1_999;
    early.push(cache.find('a'));
    nowMs = 2_000;
    const late = [cache.find('a'), cache.find('a')];
    expect(lookUps).toHaveLength(2);
    lookUps[0]?.reject(new Error('no answer'));
    for (const find of early) await expect(find).rejects.toThrow('no answer');
    lookUps[1]?.resolve(verified('ada'));
    expect(await Promise.all(late)).toEqual([verified('ada'), verified('ada')]);
  });

  it('forgets all keys of a user, and of nobody else, at once', async () => {
    const found = ['a', 'b', 'c'].map((digest) => cache.find(digest));
    lookUps.forEach(({ digest, resolve }) => resolve(verified(digest === 'c' ? 'grace' : 'ada')));
    await Promise.all(found);
    cache.evict('ada');
    void cache.find('a');
    void cache.find('b');
    expect(await cache.find('c')).toEqual(verified('grace'));
    expect(lookUps.map(({ digest }) => digest)).toEqual(['a', 'b', 'c', 'a', 'b']);
  });

  it('gives nobody who asks after an eviction what a look-up begun before it found', async () => {
    const before = cache.find('a');
    cache.evict('ada');
    const after = [cache.find('a'), cache.find('a')];
    lookUps[0]?.resolve(verified('ada', 'UTC'));
    expect((await before).caller.timezone).toBe('UTC');
    await Promise.resolve();
    lookUps[1]?.resolve(verified('ada', 'Asia/Kathmandu'));
    for (const { caller } of await Promise.all(after)) expect(caller.timezone).toBe('Asia/Kathmandu');
    expect((await cache.find('a')).caller.timezone).toBe('Asia/Kathmandu');
    expect(lookUps).toHaveLength(2);
  });

  it('lets look-ups of other users be shared across an eviction', async () => {
    const grace = [cache.find('b')];
    for (let count = 0; count < 5; count++) {
      cache.evict('ada');
      grace.push(cache.find('b'));
    }
    lookUps[0]?.resolve(verified('grace'));
    expect((await Promise.all(grace)).map(({ caller }) => caller.userId)).toEqual(
      Array.from({ length: 6 }, () => 'grace'),
    );
    expect(lookUps).toHaveLength(1);
  });

  it('does not keep what a look-up begun before an eviction found, but what one of another user did', async () => {
    const [ada, grace] = [cache.find('a'), cache.find('b')];
    cache.evict('ada');
    lookUps[0]?.resolve(verified('ada'));
    lookUps[1]?.resolve(verified('grace'));
    await Promise.all([ada, grace]);
    void cache.find('a');
    expect(await cache.find('b')).toEqual(verified('grace'));
    expect(lookUps.map(({ digest }) => digest)).toEqual(['a', 'b', 'a']);
  });

  it('trusts nothing from the future of a clock that was set back', async () => {
    nowMs = 1_000_000;
    const found = cache.find('a');
    lookUps[0]?.resolve(verified('ada'));
    await found;
    nowMs = 0;
    void cache.find('a');
    expect(lookUps).toHaveLength(2);
  });

  it('law: no answer is older than the last change of its user that was known when it was asked for', async () => {
    const users = ['ada', 'grace'];
    const steps = fc.array(
      fc.oneof(fc.constantFrom('find ada', 'find grace', 'change ada', 'change grace'), fc.constant('answer')),
      {
        maxLength: 40,
      },
    );
    await fc.assert(
      fc.asyncProperty(steps, async (walk) => {
        const version: Record<string, number> = { ada: 0, grace: 0 };
        const open: (() => void)[] = [];
        const law = new CredentialCache(
          (digest) =>
            new Promise((resolve) => {
              const asOf = version[digest];
              open.push(() => resolve(verified(digest, String(asOf))));
            }),
          { now: () => 0, shareMs: Infinity },
        );
        const asked: Promise<void>[] = [];
        for (const step of walk) {
          const [verb, user = ''] = step.split(' ');
          if (verb === 'find') {
            const atLeast = version[user] ?? 0;
            asked.push(
              law.find(user).then(({ caller }) => expect(Number(caller.timezone)).toBeGreaterThanOrEqual(atLeast)),
            );
          }
          if (verb === 'change') {
            version[user] = (version[user] ?? 0) + 1;
            law.evict(user);
          }
          if (verb === 'answer') open.shift()?.();
          await new Promise((resolve) => setImmediate(resolve));
        }
        for (let round = 0; round < 3 * users.length; round++) {
          for (const answer of open.splice(0)) answer();
          await new Promise((resolve) => setImmediate(resolve));
        }
        await Promise.all(asked);
      }),
    );
  });

  it('keeps nothing of a user who changed while it was looked up, however many others did', async () => {
    const found = cache.find('a');
    cache.evict('ada');
    for (let other = 0; other < 10_000; other += 1) cache.evict(`user ${other}`);
    lookUps[0]?.resolve(verified('ada'));
    await found;
    expect(cache.size).toBe(0);
  });

  it('stays bounded, and sheds what is too old', async () => {
    const many = Array.from({ length: 10_050 }, (_, index) => cache.find(`key ${index}`));
    lookUps.forEach(({ resolve }, index) => resolve(verified(`user ${index}`)));
    await Promise.all(many);
    expect(cache.size).toBe(10_000);
    nowMs = 5_000;
    const fresh = cache.find('fresh');
    lookUps.at(-1)?.resolve(verified('ada'));
    await fresh;
    expect(cache.size).toBe(1);
  });

  it('keeps fewer keys that may be used in many ranges of addresses, which take more memory', async () => {
    const [range] = whitelistRanges('192.0.2.0/24') ?? [];
    const ranges = Array.from({ length: 1_600 }, () => range!);
    const many = Array.from({ length: 110 }, (_, index) => cache.find(`key ${index}`));
    lookUps.forEach(({ resolve }, index) => resolve({ ...verified(`user ${index}`), ranges }));
    await Promise.all(many);
    expect(cache.size).toBe(99);
    for (let index = 0; index < 110; index += 1) cache.evict(`user ${index}`);
    const light = Array.from({ length: 10_000 }, (_, index) => cache.find(`light ${index}`));
    lookUps.slice(110).forEach(({ resolve }, index) => resolve(verified(`user ${index}`)));
    await Promise.all(light);
    expect(cache.size).toBe(10_000);
  });
});
