import type pg from 'pg';
import { startOfMonth } from './billing-data.js';
import { exponentOf } from './gpuaas-growth.js';
import type { Installation } from './installation.js';
import { mediansInTurn } from './measure.js';

/** How a team's resources are spread over the groups of a report. */
const shapes = {
  'one pool of n subscriptions': { kind: 'gpuaas_pool', poolId: '1', report: 'gpuaas-pool' },
  'n pools of one subscription': { kind: 'gpuaas_pool', poolId: 'n', report: 'gpuaas-pool' },
  'n volumes': { kind: 'shared_storage', poolId: 'NULL::bigint', report: 'shared-storage' },
} as const;
type Shape = keyof typeof shapes;
export const shapeNames = Object.keys(shapes) as Shape[];

export interface GrowthFigures {
  /** Median of one report in milliseconds, in the order of the sizes. */
  durationsMs: ReadonlyMap<Shape, readonly number[]>;
  /** e of n^e, fitted to those. */
  exponents: ReadonlyMap<Shape, number>;
}

interface Report {
  total_cost: string;
  pools?: { subscriptions: object[] }[];
  volumes?: object[];
}

/** Asks for the bill of a month by month, of teams that hold ever more resources, all in turn. */
export async function measureResources(
  platform: Installation,
  client: pg.Client,
  sizes: readonly number[],
  rounds: number,
): Promise<GrowthFigures> {
  await client.query('SET search_path TO billing, public');
  const endMs = startOfMonth(Date.now());
  const candidates: Record<string, () => Promise<unknown>> = {};
  for (const shape of shapeNames) {
    for (const size of sizes) {
      const path = await makeTeam(platform, client, shape, size, endMs);
      await requireAll(platform, path, size);
      candidates[`${shape} ${size}`] = () => platform.call('GET', path);
    }
  }
  const medians = await mediansInTurn(candidates, rounds);
  const durationsMs = new Map(
    shapeNames.map((shape) => [shape, sizes.map((size) => medians[`${shape} ${size}`] ?? NaN)]),
  );
  const exponents = [...durationsMs].map(
    ([shape, all]) => [shape, exponentOf(all.map((ms, n) => ({ size: sizes[n] ?? NaN, ms })))] as const,
  );
  return { durationsMs, exponents: new Map(exponents) };
}

/**
 * A team with `size` resources, each held for a day or more of the month before `endMs`. Returns the path of its
 * report.
 */
async function makeTeam(
  platform: Installation,
  client: pg.Client,
  shape: Shape,
  size: number,
  endMs: number,
): Promise<string> {
  const { kind, poolId, report } = shapes[shape];
  const startMs = startOfMonth(endMs, 1);
  const { id } = await platform.send<{ id: string }>('POST', '/team', { name: `${shape} ${size}` });
  const sku = `${kind}.bench`;
  const attributes = `jsonb_build_object('pool_name', 'pool ' || ${poolId}, 'profile', '1g.10gb', 'v_ram_gb', 10, 'used_size_in_gb', 1.5)`;
  await client.query(`
    INSERT INTO team (id) VALUES ('${id}') ON CONFLICT DO NOTHING;
    INSERT INTO region (region_id) VALUES (1) ON CONFLICT DO NOTHING;
    INSERT INTO series (team_no, workspace_id, kind, sku, region_id, pool_id)
      SELECT DISTINCT no, id, '${kind}', '${sku}', 1, ${poolId} FROM team, generate_series(1, ${size}) n WHERE id = '${id}';
    INSERT INTO timeline (team_no, resource_id, sku)
      SELECT no, '${kind}:' || n, '${sku}' FROM team, generate_series(1, ${size}) n WHERE id = '${id}';
    CREATE TEMPORARY TABLE held AS
      SELECT timeline.no AS timeline_no, series.no AS series_no, team_no, n, ${startMs} + n * 1000 % 86400000 AS start_ms
      FROM (SELECT *, substring(resource_id FROM '[0-9]+$')::bigint AS n FROM timeline) AS timeline JOIN series USING (team_no, sku)
      WHERE team_no = (SELECT no FROM team WHERE id = '${id}') AND series.pool_id IS NOT DISTINCT FROM ${poolId};
    INSERT INTO segment (timeline_no, start_ms, end_ms, quantity_nano, team_no, series_no)
      SELECT timeline_no, start_ms, ${endMs}, (1 + n % 7) * 1000000000, team_no, series_no FROM held;
    INSERT INTO usage_fact (source, id, timeline_no, series_no, time_ms, sequence, quantity_nano, resource_name, attributes)
      SELECT 'bench', '${shape} ${size} ' || n || ' ' || step, timeline_no, series_no,
        CASE step WHEN 1 THEN start_ms ELSE ${endMs} END, 0, CASE step WHEN 1 THEN (1 + n % 7) * 1000000000 ELSE 0 END, 'name', ${attributes}
      FROM held, generate_series(1, 2) step;
    DROP TABLE held;
    ANALYZE series; ANALYZE timeline; ANALYZE segment; ANALYZE usage_fact;`);
  await platform.send('POST', '/price', {
    sku,
    unit: 'unit',
    unit_price: '1.25',
    valid_from: new Date(startMs).toISOString(),
    force: true,
  });
  const [start, end] = [startMs, endMs].map((ms) => new Date(ms).toISOString().slice(0, 19));
  return `/team-billing/${report}/${id}/${start}/${end}/monthly/all/utc`;
}

/** A fast answer that leaves something out is no figure. */
async function requireAll(platform: Installation, path: string, size: number): Promise<void> {
  const { total_cost, pools, volumes } = await platform.send<Report>('GET', path);
  const shown = volumes?.length ?? pools?.reduce((sum, { subscriptions }) => sum + subscriptions.length, 0);
  if (shown !== size || !(Number(total_cost) > 0))
    throw new Error(`${path} shows ${shown} of ${size} resources, for ${total_cost}.`);
}
