import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { members, teams, workspaces } from '@atoll/contracts/teams';
import { Writers } from '@atoll/database';
import { lockWaits, untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { errorOf, TeamsFixture } from '../teams-fixture.js';
import { holdTeams } from './held-teams-fixture.js';

type PoolCounts = Record<'totalCount' | 'idleCount' | 'waitingCount', number>;

/** Of which the relay keeps two. */
const poolSize = 5;
let fixture: TeamsFixture;
let writers: Writers;
beforeAll(async () => {
  fixture = await TeamsFixture.start({ poolSize });
  writers = fixture.app.get(Writers, { strict: false });
});
afterAll(() => fixture.stop());

const lockTeam = (...teamIds: string[]) => holdTeams(fixture, ...teamIds);
const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await holds())) await delay(10);
};

describe('the writers of one team', () => {
  it('hold one connection, however many they are, so that other teams write and read', async () => {
    const [busy, other] = [(await fixture.createTeam()).team, (await fixture.createTeam()).team];
    const rename = (team_id: string, name: string) => fixture.call(fixture.admin, teams.update, { team_id, name });
    const release = await lockTeam(busy.id);
    const renamed = Array.from({ length: 10 }, (_, at) => rename(busy.id, `name ${at}`));
    await untilLockWaits(fixture);
    for (let round = 0; round < 2; round += 1) {
      expect(await lockWaits(fixture)).toHaveLength(1);
      expect(await rename(other.id, `other ${round}`)).toMatchObject({ name: `other ${round}` });
    }
    await release();
    expect((await Promise.all(renamed)).map(({ name }) => name).toSorted()).toEqual(
      Array.from({ length: 10 }, (_, at) => `name ${at}`).toSorted(),
    );
  });

  it('do not keep keys from being verified, even where every connection of the pool is taken', async () => {
    const locked = [await fixture.createTeam('viewer')];
    for (let more = 0; more < poolSize; more += 1) locked.push(await fixture.createTeam());
    const pool = (fixture.app.get(DataSource, { strict: false }).driver as unknown as { master: PoolCounts }).master;
    const release = await lockTeam(locked[0]?.team.id ?? '', ...locked.slice(1).map(({ team }) => team.id));
    const waiting = locked.map(({ team }) =>
      fixture.call(fixture.admin, teams.update, { team_id: team.id, name: 'late' }),
    );
    await until(() => pool.totalCount === poolSize && pool.idleCount === 0 && pool.waitingCount > 0);
    expect(await fixture.verify(locked[0]?.keys[0] ?? '')).toMatchObject({ scope: 'membership' });
    expect(pool.waitingCount).toBeGreaterThan(0);
    await release();
    await Promise.all(waiting);
  });

  it('with one Idempotency-Key get 409 at once while the first of them waits', async () => {
    const { team } = await fixture.createTeam();
    const release = await lockTeam(team.id);
    const create = () => fixture.call(fixture.admin, workspaces.create, { team_id: team.id, name: 'lab' }, 'one-key');
    const first = create();
    await untilLockWaits(fixture);
    expect((await errorOf(create())).toWire()).toMatchObject({
      code: 'conflict',
      message: 'A request with this Idempotency-Key is still running.',
    });
    await release();
    const created = await first;
    expect(await create()).toEqual(created);
  });

  it('of another team do not wait with them, also where their call is refused', async () => {
    const [busy, other] = [await fixture.createTeam('team_owner'), await fixture.createTeam('team_owner')];
    const context = await fixture.contextOf(busy.keys[0] ?? '', teams.update, {});
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
    const first = writers.run(busy.team.id, context, () => finished);
    const asked = { team_id: busy.team.id, user_id: busy.userIds[0] ?? '' };
    expect((await errorOf(fixture.call(other.keys[0] ?? '', members.issueKey, asked))).code).toBe('not_found');
    finish();
    await first;
  });
});
