import { withClient } from './with-client.js';

export interface Member {
  teamId: string;
  key: string;
}

export interface Neighbours {
  /** Members of other teams, one a team. */
  callers: Member[];
  /** Members of the one team that has many workspaces. */
  writers: Member[];
}

interface CreatedTeam {
  id: string;
  members: { api_key: string; email: string }[];
}

/**
 * Teams made through the API; the workspaces of the large one by SQL, since its limits would make that take minutes.
 */
export async function makeNeighbours(
  url: string,
  databaseUrl: string,
  adminKey: string,
  counts: { callers: number; writers: number; workspaces: number },
): Promise<Neighbours> {
  const create = async (name: string, members: number): Promise<Member[]> => {
    const people = Array.from({ length: members }, (_, at) => ({
      email: `${name}-${at}@example.com`,
      name,
      role: 'team_admin',
    }));
    const response = await fetch(`${url}/api/team`, {
      method: 'POST',
      headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name, members: people }),
    });
    if (!response.ok) throw new Error(`POST /team answered ${response.status}: ${await response.text()}`);
    const team = (await response.json()) as CreatedTeam;
    return team.members
      .filter(({ email }) => email.startsWith(name))
      .map(({ api_key }) => ({ teamId: team.id, key: api_key }));
  };
  const callers: Member[] = [];
  for (let at = 0; at < counts.callers; at++) callers.push(...(await create(`caller-${at}`, 1)));
  const writers = await create('busy', counts.writers);
  await withClient(databaseUrl, async (client) => {
    await client.query(
      `INSERT INTO teams.workspace (id, team_id, name)
       SELECT gen_random_uuid(), $1, 'a workspace of a longer name, number ' || n FROM generate_series(1, $2::int) n`,
      [writers[0]?.teamId, counts.workspaces],
    );
    await client.query('ANALYZE teams.workspace');
  });
  return { callers, writers };
}
