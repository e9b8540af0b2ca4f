import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { startEmbeddedPostgres } from '@atoll/database';
import { createDatabase } from './databases.js';
import { exponentOf } from './gpuaas-growth.js';
import { Installation } from './installation.js';
import { mediansInTurn } from './measure.js';
import { stopAll } from './processes.js';
import { withClient } from './with-client.js';

/** `npm run bench team-listing`: GET /team as the operator, by the number of teams and the page asked for. */
const { values } = parseArgs({
  options: {
    teams: { type: 'string', default: '1000,10000,100000' },
    calls: { type: 'string', default: '200' },
  },
});
const goalMs = 5;

/** Teams of two members with a key each, beside the one that the API has made. */
async function addTeams(databaseUrl: string, teams: number): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    await client.query(`SET search_path TO teams`);
    await client.query(
      `INSERT INTO team (id, name, description, policy_id, created_at)
       SELECT gen_random_uuid(), 'team ' || n, 'Protein folding', (SELECT id FROM image_policy WHERE is_default), now() - n * interval '1 minute'
       FROM generate_series(1, $1::int) n`,
      [teams],
    );
    await client.query(
      `INSERT INTO "user" (id, email, name) SELECT gen_random_uuid(), n || '@example.com', 'x' FROM generate_series(1, 1000) n`,
    );
    await client.query(
      `WITH people AS (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM "user"), numbered AS (SELECT id, row_number() OVER () AS n FROM team)
       INSERT INTO membership (id, team_id, user_id, name, role)
       SELECT gen_random_uuid(), numbered.id, people.id, 'x', role
       FROM numbered CROSS JOIN (VALUES (0, 'team_owner'), (500, 'member')) two (offset_by, role)
       JOIN people ON people.n = (numbered.n + offset_by) % 1000 ON CONFLICT DO NOTHING`,
    );
    await client.query(
      `INSERT INTO workspace (id, team_id, name, is_default) SELECT gen_random_uuid(), id, 'default', true FROM team ON CONFLICT DO NOTHING`,
    );
    await client.query(
      `INSERT INTO api_key (id, user_id, team_id, digest, mask, expiry_date)
       SELECT gen_random_uuid(), user_id, team_id, sha256(id::text::bytea), 'atl_ab12…wxyz', now() + interval '90 days' FROM membership ON CONFLICT DO NOTHING`,
    );
    await client.query('VACUUM ANALYZE');
  });
}

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const postgres = await startEmbeddedPostgres({ dataDir: folder });
try {
  console.log(
    `${cpus().length} cores, ${cpus()[0]?.model}, Node.js ${process.version}; p50 of ${values.calls} calls, limit 10\n`,
  );
  const points = new Map<string, { size: number; ms: number }[]>();
  for (const size of values.teams.split(',').map(Number)) {
    const url = await createDatabase(postgres.url, `bench_listing_${size}`);
    const platform = await Installation.start(url, join(folder, `platform-${size}`), createApiKey());
    await addTeams(url, size);
    const pages = {
      'first page': 0,
      'page at a quarter': size / 40,
      'page in the middle': size / 20,
      'page at nine tenths': (size * 9) / 100,
      'last page': size / 10 - 1,
    };
    const candidates = Object.fromEntries(
      Object.entries(pages).map(([name, page]) => [
        name,
        () => platform.call('GET', `/team?page=${Math.floor(page)}&limit=10`),
      ]),
    );
    const medians = await mediansInTurn(candidates, Number(values.calls));
    for (const [name, ms] of Object.entries(medians)) points.set(name, [...(points.get(name) ?? []), { size, ms }]);
    await platform.stop();
  }
  for (const [name, all] of points) {
    const figures = all.map(({ size, ms }) => `${size.toLocaleString('en')} teams ${ms.toFixed(2)} ms`).join(', ');
    const last = all.at(-1)?.ms ?? NaN;
    console.log(
      `  ${name.padEnd(20)} ${figures}; exponent ${exponentOf(all).toFixed(2)} (goal ${goalMs} ms: ${last <= goalMs ? 'met' : 'MISSED'})`,
    );
  }
} finally {
  await stopAll();
  await postgres.stop();
  rmSync(folder, { recursive: true, force: true });
}
