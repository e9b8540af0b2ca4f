import { describe, expect, it } from '@jest/globals';
import { startPostgres } from '@atoll/testing';
import { OwnPlatform, until } from '../own-platform.js';

const own = new OwnPlatform();

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
