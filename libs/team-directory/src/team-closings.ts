import { takeTurn } from '@atoll/database';
import type { EntityManager, QueryRunner } from 'typeorm';

/**
 * How long nothing new comes where the answer was that nothing is held: as long as a deletion that nobody concludes
 * stays open.
 */
const closedMs = 60_000;

/** What is to be deleted: by the column that names it, which is the key of its closings too. */
export interface Doomed {
  readonly team_id: string;
  readonly workspace_id?: string;
}

/**
 * For the first migration of a service that can hold something of a team: what `TeamGate.holdOpen` and `closeTo` read
 * and write.
 */
export async function createClosingTables(runner: QueryRunner, schema: string): Promise<void> {
  for (const kind of ['team', 'workspace']) {
    await runner.query(
      `CREATE TABLE "${schema}".${kind}_closing (${kind}_id uuid PRIMARY KEY, until timestamptz(3) NOT NULL, attempt_id uuid)`,
    );
  }
}

export async function dropClosingTables(runner: QueryRunner, schema: string): Promise<void> {
  await runner.query(`DROP TABLE "${schema}".workspace_closing, "${schema}".team_closing`);
}

/** Whoever is about to take something for the team (`TeamGate.holdOpen`) commits first, or finds it closed. */
export async function lockForAnswer(manager: EntityManager, teamId: string): Promise<void> {
  await takeTurn(manager, `team ${teamId}`);
}

/**
 * Nothing new from now on: for a minute, or for ever. A forced deletion ends in no other way than that the team is
 * gone, so what it closes stays closed.
 */
export async function closeTo(
  manager: EntityManager,
  doomed: Doomed,
  attemptId: string,
  isForEver = false,
): Promise<void> {
  const [table, key, id] =
    doomed.workspace_id === undefined
      ? ['team_closing', 'team_id', doomed.team_id]
      : ['workspace_closing', 'workspace_id', doomed.workspace_id];
  const until = isForEver ? `'infinity'` : `clock_timestamp() + interval '${closedMs} milliseconds'`;
  await manager.query(
    `INSERT INTO ${table} (${key}, until, attempt_id) VALUES ($1, ${until}, $2)
     ON CONFLICT (${key}) DO UPDATE SET until = excluded.until, attempt_id = excluded.attempt_id WHERE ${table}.until < 'infinity'`,
    [id, attemptId],
  );
}

/** The attempt was called off: what it closed is open again. */
export async function reopen(manager: EntityManager, attemptId: string): Promise<void> {
  await manager.query('DELETE FROM team_closing WHERE attempt_id = $1', [attemptId]);
  await manager.query('DELETE FROM workspace_closing WHERE attempt_id = $1', [attemptId]);
}
