import { describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createApiKey } from '@atoll/api-keys';
import { makeServerFolder, startPostgres } from '@atoll/testing';
import { OwnPlatform, until } from '../own-platform.js';
import { startPlatform } from '../running-platform.js';

const own = new OwnPlatform();

/** Callers are limited, in the words of the reference. */
async function expectLimit(): Promise<void> {
  const refused = await until(async () => {
    const answer = await own.get('/user/profile');
    return answer.status === 429 ? answer : undefined;
  });
  expect(await refused.json()).toMatchObject({
    code: 'too_many_requests',
    detail: 'Too many requests. Please try again later.',
    message: 'Too many requests. Please try again later.',
  });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(refused.headers.get('ratelimit')).toBeTruthy();
  expect(refused.headers.get('ratelimit-policy')).toBeTruthy();
}

describe('one process', () => {
  it('does not start twice on one data folder, and says who holds it; killed outright, it finds everything again at its next start, which limits its callers where it is told to', async () => {
    own.folder = makeServerFolder();
    const env = { ATOLL_DATA_DIR: own.folder, ATOLL_ADMIN_KEY: createApiKey() };
    const first = await own.start('one-process', env);
    const team = await own.createTeam();
    await expect(startPlatform('one-process', { ATOLL_DATA_DIR: own.folder })).rejects.toThrow(
      `is in use by process ${first.process.pid}`,
    );
    expect((await own.get('/user/profile')).status).toBe(200);
    first.process.kill('SIGKILL');
    await once(first.process, 'exit');

    await own.start('one-process', { ...env, ATOLL_LIMITS: 'on', ATOLL_LIMIT_ADMIN: '5/60' });
    const found = await own.get(`/team/${team}`);
    expect(found.status).toBe(200);
    expect(await found.json()).toMatchObject({ id: team, name: 'Survivors' });
    await expectLimit();
  });
});

describe('a PostgreSQL that is frozen, then killed', () => {
  it('is told as 503 before anyone stops waiting, and forgotten when it is back', async () => {
    const postgres = await startPostgres();
    const platform = await own.start('one-process', { DATABASE_URL: postgres.url });
    const team = await own.createTeam();
    const expectOutage = async () => {
      const refused = await own.get(`/team/${team}`);
      expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([503, 'unavailable']);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await fetch(`${platform.url}/readyz`)).status).toBe(503);
      expect((await fetch(`${platform.url}/livez`)).status).toBe(200);
    };
    const expectRecovery = () =>
      until(async () => ((await own.get(`/team/${team}`)).status === 200 ? true : undefined));

    postgres.pause();
    await expectOutage();
    postgres.resume();
    await expectRecovery();
    await postgres.kill();
    await expectOutage();
    await postgres.restart();
    await expectRecovery();

    await own.stop();
    await postgres.stop();
  });
});
