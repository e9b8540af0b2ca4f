import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { passkeys } from '@atoll/contracts/teams';
import { contextOf, logIn, somebody } from '../sessions/session-fixture.js';
import { TeamsFixture } from '../teams-fixture.js';

const poolSize = 4;
let fixture: TeamsFixture;
beforeAll(async () => {
  fixture = await TeamsFixture.start({ poolSize });
});
afterAll(() => fixture.stop());

// With a second connection each, those who hold one would wait for another that none of them gives back.
it('passkeys that are begun at once, more than there are connections, take one each', async () => {
  const context = await contextOf(fixture, await logIn(fixture, await somebody(fixture)));
  const begun = await Promise.all(Array.from({ length: 2 * poolSize }, () => fixture.ask(passkeys.begin, {}, context)));
  expect(new Set(begun.map(({ challenge_id }) => challenge_id)).size).toBe(2 * poolSize);
});
