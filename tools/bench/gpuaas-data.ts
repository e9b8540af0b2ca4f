import type pg from 'pg';

/** What the listing is measured on. */
export interface ListingSize {
  /** All of them live. */
  subscriptions: number;
  teams: number;
}

const pools = 20;
/** One pool in so many sells its slices twice over: its subscriptions hold no lease while nothing runs. */
const entitledEvery = 4;
const slicesPerGpu = 7;
const gpusPerNode = 8;
const minutesApart = 5;

/**
 * Fills the tables of GPU pools with nodes that are ready, GPUs at rest, pools, and active subscriptions to 1 or 2
 * slices each, in turn to each pool, one every five minutes up to now. What is leased is packed. The same numbers at
 * each run.
 */
export async function generateSubscriptions(client: pg.Client, { subscriptions, teams }: ListingSize): Promise<void> {
  await client.query(`SET search_path TO gpuaas, public; SET maintenance_work_mem TO '1GB'`);
  await addSubscriptions(client, subscriptions, teams);
  await addGpus(client);
  await addLeases(client);
  for (const table of ['node', 'pool', 'gpu', 'subscription', 'lease']) await client.query(`VACUUM (ANALYZE) ${table}`);
}

async function addSubscriptions(client: pg.Client, subscriptions: number, teams: number): Promise<void> {
  await client.query(`
    INSERT INTO region (region_name) VALUES ('bench');
    INSERT INTO gpuaas (region_id, name) SELECT region_id, 'bench' FROM region;
    INSERT INTO pool (gpuaas_id, pool_name, board, sharing_mode, mechanism, profiles, overcommit, allow_fallback)
      SELECT gpuaas_id, 'pool ' || n, 'A100-80GB', 'Spatial', 'mig', '{1g.10gb}', CASE WHEN n % ${entitledEvery} = 0 THEN 2 ELSE 1 END, false
      FROM gpuaas, generate_series(1, ${pools}) n ORDER BY n;
    INSERT INTO subscription (team_id, workspace_id, pool_id, name, profile, v_ram_gb, vgpus, active_since, created_at, state, entered_at, revision, request_id)
      SELECT md5('team ' || n % ${teams})::uuid, md5('workspace ' || n % ${teams})::uuid, 1 + n % ${pools}, 'subscription ' || n, '1g.10gb', 10,
        1 + n / ${pools} % 2, made_at + interval '1 second', made_at, 'active', made_at + interval '1 second', 1, 'request ' || n
      FROM generate_series(1, ${subscriptions}) n, LATERAL (SELECT now() - (${subscriptions} - n) * interval '${minutesApart} minutes' AS made_at) made
      ORDER BY n`);
}

/** As many as the subscriptions of each pool need. */
async function addGpus(client: pg.Client): Promise<void> {
  await client.query(`
    CREATE TEMPORARY TABLE wanted AS
      SELECT pool_id, row_number() OVER (ORDER BY pool_id, n) - 1 AS place
      FROM (SELECT pool_id, ceil(sum(vgpus) / ${slicesPerGpu}.0)::int AS gpus FROM subscription GROUP BY pool_id) need, generate_series(1, gpus) n;
    INSERT INTO node (gpuaas_id, node_name, state)
      SELECT gpuaas_id, 'node-' || n, 'ready' FROM gpuaas, generate_series(1, (SELECT max(place) / ${gpusPerNode} + 1 FROM wanted)) n ORDER BY n;
    INSERT INTO gpu (node_id, uuid, board, pool_id, generation, state)
      SELECT node_id, 'GPU-' || md5('gpu ' || place)::uuid, 'A100-80GB', pool_id, 1, 'spatial'
      FROM wanted JOIN (SELECT node_id, row_number() OVER (ORDER BY node_id) - 1 AS at FROM node) node ON at = place / ${gpusPerNode} ORDER BY place;
    ANALYZE gpu`);
}

async function addLeases(client: pg.Client): Promise<void> {
  await client.query(`
    INSERT INTO lease (gpu_id, subscription_id, profile, slot_start, slot_size, gpu_instance_id)
      SELECT gpu_id, subscription_id, profile, slice % ${slicesPerGpu}, 1, slice % ${slicesPerGpu} + 1
      FROM (
        SELECT pool_id, subscription_id, profile, row_number() OVER (PARTITION BY pool_id ORDER BY subscription_id) - 1 AS slice
        FROM subscription JOIN pool USING (pool_id), generate_series(1, vgpus) WHERE overcommit = 1
      ) slices JOIN (
        SELECT pool_id, gpu_id, row_number() OVER (PARTITION BY pool_id ORDER BY gpu_id) - 1 AS at FROM gpu
      ) gpus USING (pool_id) WHERE at = slice / ${slicesPerGpu} ORDER BY subscription_id;
    UPDATE gpu SET slots_used = (
      SELECT bit_or(((1::bigint << slot_size) - 1) << slot_start) FROM lease WHERE lease.gpu_id = gpu.gpu_id
    ) WHERE EXISTS (SELECT FROM lease WHERE lease.gpu_id = gpu.gpu_id)`);
}

/** So many pools of MIG at rest, between them so many GPUs, on nodes of eight that are ready. */
export async function addPools(client: pg.Client, pools: number, gpus: number): Promise<void> {
  await client.query(`
    INSERT INTO pool (gpuaas_id, pool_name, board, sharing_mode, mechanism, profiles, overcommit, allow_fallback)
      SELECT gpuaas_id, 'offered ' || n, 'A100-80GB', 'Spatial', 'mig', '{1g.10gb,3g.40gb}', 1, false FROM gpuaas, generate_series(1, ${pools}) n ORDER BY n`);
  await addReadyGpus(
    client,
    'offered',
    gpus,
    `(SELECT min(pool_id) FROM pool WHERE pool_name LIKE 'offered %') + n % ${pools}`,
    'spatial',
  );
}

/** So many GPUs in no pool, on nodes of eight that are ready. Gives back their ids. */
export async function addIdleGpus(client: pg.Client, gpus: number): Promise<string[]> {
  return addReadyGpus(client, 'idle', gpus, 'NULL', 'unpooled');
}

async function addReadyGpus(
  client: pg.Client,
  name: string,
  gpus: number,
  poolId: string,
  state: string,
): Promise<string[]> {
  await client.query(`
    INSERT INTO node (gpuaas_id, node_name, state)
      SELECT gpuaas_id, '${name}-' || n, 'ready' FROM gpuaas, generate_series(0, ${Math.ceil(gpus / gpusPerNode) - 1}) n ORDER BY n`);
  const { rows } = await client.query<{ gpu_id: string }>(`
    INSERT INTO gpu (node_id, uuid, board, pool_id, state)
      SELECT node_id, 'GPU-' || md5('${name} ' || n)::uuid, 'A100-80GB', ${poolId}, '${state}'
      FROM generate_series(0, ${gpus - 1}) n JOIN node ON node_name = '${name}-' || n / ${gpusPerNode} ORDER BY n
    RETURNING gpu_id`);
  await client.query(
    `INSERT INTO simulated_device (uuid) SELECT uuid FROM gpu JOIN node USING (node_id) WHERE node_name LIKE '${name}-%'`,
  );
  return rows.map(({ gpu_id }) => gpu_id);
}

/** Who has ended workloads and subscriptions of one pool, beside live ones. */
export interface Ending {
  teamId: string;
  workspaceId: string;
  poolId: string;
  subscriptionId: string;
}

/** So many workloads of one subscription that have ended, and as many subscriptions of its team. */
export async function addEnded(
  client: pg.Client,
  { teamId, workspaceId, poolId, subscriptionId }: Ending,
  count: number,
): Promise<void> {
  await client.query(`
    INSERT INTO gpuaas.workload (subscription_id, team_id, name, vgpus, created_at, state)
      SELECT ${subscriptionId}, '${teamId}', 'ended', 1, now() - n * interval '1 minute', 'stopped' FROM generate_series(1, ${count}) n;
    INSERT INTO gpuaas.subscription (team_id, workspace_id, pool_id, profile, v_ram_gb, vgpus, created_at, state)
      SELECT '${teamId}', '${workspaceId}', ${poolId}, 'mps-2', 40, 1, now() - n * interval '1 minute', 'unsubscribed' FROM generate_series(1, ${count}) n`);
  await client.query('VACUUM (ANALYZE) gpuaas.workload');
  await client.query('VACUUM (ANALYZE) gpuaas.subscription');
}
