import { randomUUID } from 'node:crypto';
import pg from 'pg';

/** What one subscription of the product held. */
export interface HeldRow {
  team_id: string;
  workspace_id: string;
  pool_id: string;
  request_id: string;
  gpu_ids: string[];
  starts: number[];
}

const tables = [
  'region',
  'gpuaas',
  'node',
  'pool',
  'gpu',
  'subscription',
  'workload',
  'lease',
  'machine_history',
  'capacity_change',
  'outbox',
];
/** What others refer to. */
const inventory = ['region', 'gpuaas', 'node', 'pool', 'gpu'];
const filled = ['lease', 'workload', 'subscription', 'machine_history', 'capacity_change', 'outbox'];

/**
 * Tables of the same form in a schema of their own, with all indexes and constraints, and what is there to be
 * subscribed to.
 */
export async function makeFloor(client: pg.Client): Promise<void> {
  await client.query('CREATE SCHEMA floor');
  await client.query('SET search_path TO gpuaas');
  const { rows } = await client.query<{ name: string; definition: string }>(
    `SELECT conrelid::regclass::text AS name, pg_get_constraintdef(oid) AS definition FROM pg_constraint
     WHERE contype = 'f' AND conrelid = ANY ($1::regclass[]) AND confrelid = ANY ($1::regclass[])`,
    [tables],
  );
  for (const table of tables) await client.query(`CREATE TABLE floor.${table} (LIKE gpuaas.${table} INCLUDING ALL)`);
  for (const table of inventory)
    await client.query(`INSERT INTO floor.${table} OVERRIDING SYSTEM VALUE SELECT * FROM gpuaas.${table}`);
  await client.query('SET search_path TO floor');
  for (const { name, definition } of rows) await client.query(`ALTER TABLE ${name} ADD ${definition}`);
  await client.query('RESET search_path');
}

/** Clears what was filled in the product's tables or the floor's. */
export async function clear(client: pg.Client, schema: 'gpuaas' | 'floor'): Promise<void> {
  const more = schema === 'gpuaas' ? ', gpuaas.connection, gpuaas.waiting_request, gpuaas.held_slice' : '';
  await client.query(`TRUNCATE ${filled.map((table) => `${schema}.${table}`).join()}${more}`);
  await client.query(`UPDATE ${schema}.gpu SET slots_used = 0 WHERE slots_used <> 0`);
  for (const table of [...inventory, ...filled]) await client.query(`VACUUM (ANALYZE) ${schema}.${table}`);
}

/**
 * Subscriptions a second: each connection writes the rows of the next one in a transaction when its last has committed.
 */
export async function fillFloor(
  url: string,
  rows: readonly HeldRow[],
  connections: number,
  isWhole: boolean,
): Promise<number> {
  const clients = Array.from(
    { length: connections },
    () => new pg.Client({ connectionString: url, options: '-c search_path=floor' }),
  );
  await Promise.all(clients.map((client) => client.connect()));
  const waiting = rows.values();
  const startedAt = performance.now();
  await Promise.all(
    clients.map(async (client) => {
      for (const row of waiting) await writeOne(client, row, isWhole);
    }),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  await Promise.all(clients.map((client) => client.end()));
  return rows.length / seconds;
}

/**
 * What accepting a subscription writes: itself, its leases, its history, and that its team holds something new. With
 * `isWhole` besides what is added until it is active: more history, the team once more, and the fact for billing.
 */
async function writeOne(client: pg.Client, row: HeldRow, isWhole: boolean): Promise<void> {
  const { team_id, workspace_id, pool_id, request_id, gpu_ids, starts } = row;
  const write = (name: string, text: string, values: unknown[]) => client.query<{ id: string }>({ name, text, values });
  await client.query('BEGIN');
  const { rows } = await write('subscription', subscription, [
    team_id,
    workspace_id,
    pool_id,
    gpu_ids.length,
    request_id,
  ]);
  const id = rows[0]?.id ?? '';
  await write('lease', lease, [gpu_ids, starts, id]);
  await write('history', history, [id, null, 'subscribing', null, request_id]);
  await write('capacity', capacity, [team_id]);
  if (isWhole) {
    await write('history', history, [id, 'subscribing', 'active', 'GRANTED', request_id]);
    await write('capacity', capacity, [team_id]);
    await write('outbox', outbox, [randomUUID(), payloadOf(id, row)]);
  }
  await client.query('COMMIT');
}

const subscription = `INSERT INTO subscription (team_id, workspace_id, pool_id, name, profile, v_ram_gb, vgpus, state, request_id, deadline_at, due_at)
  VALUES ($1, $2, $3, 'training', '1g.10gb', 10, $4, 'subscribing', $5, now() + interval '3 minutes', now()) RETURNING subscription_id AS id`;
const lease = `INSERT INTO lease (gpu_id, slot_start, subscription_id, profile, slot_size)
  SELECT gpu_id, slot_start, $3, '1g.10gb', 1 FROM unnest($1::bigint[], $2::smallint[]) place (gpu_id, slot_start)`;
const history = `INSERT INTO machine_history (machine, instance, from_state, to_state, event, actor, request_id, at)
  VALUES ('subscription', $1, $2, $3, $4, 'user:01999999-0000-7000-8000-000000000000', $5, clock_timestamp())`;
const capacity = 'INSERT INTO capacity_change (team_id) VALUES ($1)';
const outbox = `INSERT INTO outbox (id, event_name, payload) VALUES ($1, 'gpuaas.usage-told', $2)`;

function payloadOf(id: string, { team_id, workspace_id, pool_id, gpu_ids }: HeldRow): string {
  const fact = {
    id: `subscription:${id}:1`,
    time: new Date().toISOString(),
    sequence: 1,
    resource_id: `gpuaas_pool:${id}`,
    resource_name: 'training',
    kind: 'gpuaas_pool',
    sku: 'gpu.A100-80GB.1g.10gb',
    quantity: String(gpu_ids.length),
    team_id,
    workspace_id,
    region_id: '1',
    pool_id,
    attributes: { pool_name: 'bench', profile: '1g.10gb', v_ram_gb: 10 },
  };
  return JSON.stringify({ facts: [fact] });
}
