import { untilLockWaits } from '@atoll/testing';
import { DataSource } from 'typeorm';
import type { TeamsFixture } from '../teams-fixture.js';

/** Locks the teams' rows past this service, as another replica that hangs would, until what it returns is called. */
export async function holdTeams(fixture: TeamsFixture, ...teamIds: string[]): Promise<() => Promise<void>> {
  const runner = fixture.app.get(DataSource, { strict: false }).createQueryRunner();
  await runner.startTransaction();
  await runner.query('SET LOCAL idle_in_transaction_session_timeout = 0');
  await runner.query('SELECT FROM team WHERE id = ANY ($1) FOR UPDATE', [teamIds]);
  return async () => {
    await runner.commitTransaction();
    await runner.release();
  };
}

/**
 * What comes of the calls where they reach a team one after the other, each before the one before it has had its
 * effect.
 */
export async function inLine(
  fixture: TeamsFixture,
  teamId: string,
  calls: (() => Promise<unknown>)[],
): Promise<PromiseSettledResult<unknown>[]> {
  const release = await holdTeams(fixture, teamId);
  const outcomes: Promise<PromiseSettledResult<unknown>[]>[] = [];
  for (const call of calls) {
    outcomes.push(Promise.allSettled([call()]));
    await untilLockWaits(fixture, { count: outcomes.length });
  }
  await release();
  return (await Promise.all(outcomes)).flat();
}
