import { ConnectionChanges } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Fact } from './distinct-facts.js';

/** What a fact's timeline and series are called in billing's tables. */
export interface Numbers {
  timelineNo: number;
  seriesNo: number;
}

/** Of so many combinations the numbers are kept: some tens of megabytes. */
const mostKnown = 100_000;

/**
 * Finds the numbers of timelines and series, or gives them. Once given they are for ever, so what is committed is
 * looked up once, until a connection is lost or opened: the next one may lead to a server that lacks the commit.
 */
@Injectable()
export class Numbering {
  private readonly known = new Map<string, Numbers>();

  constructor(connections: ConnectionChanges) {
    connections.clear(this.known);
  }

  /** In the order of the facts. */
  async numbersOf(manager: EntityManager, facts: readonly Fact[]): Promise<Numbers[]> {
    const names = facts.map(nameOf);
    const known = names.map((name) => this.known.get(name));
    const unknown = new Map(facts.flatMap((fact, at) => (known[at] ? [] : [[names[at] ?? '', fact] as const])));
    const found = unknown.size > 0 ? await this.look(manager, unknown) : null;
    return names.map((name, at) => {
      const numbers = known[at] ?? found?.get(name);
      if (!numbers) throw new Error('A fact has neither timeline nor series.');
      return numbers;
    });
  }

  private async look(
    manager: EntityManager,
    unknown: ReadonlyMap<string, Fact>,
  ): Promise<ReadonlyMap<string, Numbers>> {
    const names = [...unknown.keys()];
    const facts = [...unknown.values()];
    const values = [
      facts.map(({ teamId }) => teamId),
      facts.map(({ resourceId }) => resourceId),
      facts.map(({ sku }) => sku),
      facts.map(({ workspaceId }) => workspaceId),
      facts.map(({ kind }) => kind),
      facts.map(({ regionId }) => regionId),
      facts.map(({ poolId }) => poolId),
    ];
    const committed = numbered(names, await manager.query<Numbers[]>(numbersQuery, values));
    if (committed.size === names.length) {
      this.keep(committed);
      return committed;
    }
    // Only what is missing: an attempt that meets a conflict would use up a number of its sequence.
    for (const statement of missing) {
      await manager.query(
        statement.sql,
        statement.values.map((at) => values[at]),
      );
    }
    return numbered(names, await manager.query<Numbers[]>(numbersQuery, values));
  }

  private keep(committed: ReadonlyMap<string, Numbers>): void {
    if (this.known.size + committed.size > mostKnown) this.known.clear();
    for (const [name, numbers] of committed) this.known.set(name, numbers);
  }
}

function nameOf({ teamId, workspaceId, regionId, poolId, kind, sku, resourceId }: Fact): string {
  return `${teamId} ${workspaceId} ${regionId} ${poolId} ${kind} ${sku} ${resourceId}`;
}

/** Those that have both numbers. */
function numbered(names: readonly string[], rows: readonly Numbers[]): Map<string, Numbers> {
  return new Map(rows.flatMap((row, at) => (row.timelineNo && row.seriesNo ? [[names[at] ?? '', row] as const] : [])));
}

/** The series of `told`, by its whole key: `IS NOT DISTINCT FROM` would be by no index. One of the four parts runs. */
const ofTold = `SELECT no FROM series WHERE series.team_no = team.no AND series.workspace_id = told.workspace_id
      AND series.kind = told.kind AND series.sku = told.sku`;
const seriesOfTold = `(${ofTold} AND region_id = told.region_id AND pool_id = told.pool_id
    UNION ALL ${ofTold} AND region_id = told.region_id AND told.pool_id IS NULL AND pool_id IS NULL
    UNION ALL ${ofTold} AND told.region_id IS NULL AND region_id IS NULL AND pool_id = told.pool_id
    UNION ALL ${ofTold} AND told.region_id IS NULL AND region_id IS NULL AND told.pool_id IS NULL AND pool_id IS NULL)`;

/** Subqueries and not joins: each number is one look-up in an index, however many facts PostgreSQL expects. */
const numbersQuery = `SELECT (SELECT no FROM timeline WHERE timeline.team_no = team.no
      AND timeline.resource_id = told.resource_id AND timeline.sku = told.sku) AS "timelineNo", ${seriesOfTold} AS "seriesNo"
  FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::text[], $6::bigint[], $7::bigint[])
    WITH ORDINALITY AS told (team_id, resource_id, sku, workspace_id, kind, region_id, pool_id, at)
  LEFT JOIN team ON team.id = told.team_id
  ORDER BY told.at`;

/**
 * Each in one order, so that batches which make the same do not lock each other out. `OFFSET 0` keeps a look into an
 * index from being planned as a join.
 */
const missing: { sql: string; values: number[] }[] = [
  {
    values: [0],
    sql: `INSERT INTO team (id) SELECT DISTINCT id FROM unnest($1::uuid[]) told (id)
      WHERE NOT EXISTS (SELECT FROM team WHERE team.id = told.id) ORDER BY id ON CONFLICT DO NOTHING`,
  },
  {
    values: [5],
    sql: `INSERT INTO region (region_id) SELECT DISTINCT id FROM unnest($1::bigint[]) told (id)
      WHERE id IS NOT NULL AND NOT EXISTS (SELECT FROM region WHERE region_id = id) ORDER BY id ON CONFLICT DO NOTHING`,
  },
  {
    values: [0, 1, 2],
    sql: `INSERT INTO timeline (team_no, resource_id, sku)
      SELECT DISTINCT team.no, told.resource_id, told.sku
      FROM unnest($1::uuid[], $2::text[], $3::text[]) AS told (team_id, resource_id, sku) JOIN team ON team.id = told.team_id
      WHERE NOT EXISTS (
        SELECT FROM timeline known WHERE known.team_no = team.no AND known.resource_id = told.resource_id AND known.sku = told.sku OFFSET 0)
      ORDER BY 1, 2, 3 ON CONFLICT DO NOTHING`,
  },
  {
    values: [0, 3, 4, 2, 5, 6],
    sql: `INSERT INTO series (team_no, workspace_id, kind, sku, region_id, pool_id)
      SELECT DISTINCT team.no, told.workspace_id, told.kind, told.sku, told.region_id, told.pool_id
      FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
        AS told (team_id, workspace_id, kind, sku, region_id, pool_id)
      JOIN team ON team.id = told.team_id
      WHERE ${seriesOfTold} IS NULL
      ORDER BY 1, 2, 3, 4, 5, 6 ON CONFLICT DO NOTHING`,
  },
];
