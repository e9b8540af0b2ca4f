import { parseArgs } from 'node:util';
import { Logger } from '@nestjs/common';
import { MachineWorkers, type MachineRow, type MachineWorker } from '@atoll/state-machine';
import { BareServiceUnderTest, startServiceUnderTest } from '@atoll/testing';
import { serviceDefinitions } from '../service-definitions.js';
import { exponentOf } from './gpuaas-growth.js';
import { median } from './measure.js';

Logger.overrideLogger(['error', 'warn']);

/**
 * `npm run bench machines`: what workers cost beside ever more nodes of which nothing is to be done, and what they do a
 * second.
 */
const { values } = parseArgs({
  options: {
    sizes: { type: 'string', default: '100,300,1000,3000,10000' },
    /** Of each measurement, for its median. */
    rounds: { type: 'string', default: '50' },
  },
});
const sizes = values.sizes.split(',').map(Number);
const gpusPerNode = 8;

type Worker = MachineWorker<MachineRow, string, string>;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

async function medianOf(work: () => Promise<unknown>): Promise<number> {
  const all: number[] = [];
  for (let round = 0; round < Number(values.rounds); round += 1) all.push(await timed(work));
  return median(all);
}

/** Nodes that are ready, with GPUs at rest in a pool. */
async function addNodes(service: BareServiceUnderTest, count: number): Promise<void> {
  await service.query(
    `WITH place AS (INSERT INTO region (region_name) VALUES ('bench') RETURNING region_id),
       service AS (INSERT INTO gpuaas (region_id, name) SELECT region_id, 'bench' FROM place RETURNING gpuaas_id),
       pooled AS (
         INSERT INTO pool (gpuaas_id, pool_name, board, sharing_mode, mechanism, profiles, overcommit, allow_fallback)
         SELECT gpuaas_id, 'bench', 'A100-80GB', 'Spatial', 'mig', '{1g.10gb}', 1, false FROM service RETURNING pool_id
       ), added AS (
         INSERT INTO node (gpuaas_id, node_name, state) SELECT gpuaas_id, 'node-' || n, 'ready' FROM service, generate_series(1, $1) n RETURNING node_id
       )
     INSERT INTO gpu (node_id, uuid, board, pool_id, state)
     SELECT node_id, 'GPU-' || node_id || '-' || n, 'A100-80GB', pool_id, 'spatial' FROM added, pooled, generate_series(1, ${gpusPerNode}) n`,
    [count],
  );
  await service.query('ANALYZE');
}

async function until(service: BareServiceUnderTest, sql: string): Promise<void> {
  for (;;) {
    const [row] = await service.query<{ done: boolean }>(sql);
    if (row?.done) return;
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

async function measureSize(count: number): Promise<Record<string, number>> {
  const definition = (await serviceDefinitions()).find(({ name }) => name === 'gpuaas');
  if (!definition) throw new Error('The gpuaas service was not built.');
  const service = new BareServiceUnderTest(
    await startServiceUnderTest(definition, { settings: { workers: { isIdle: true } } }),
  );
  const workers = service.get(MachineWorkers).workers;
  const nodes = workers[1] as Worker;
  await addNodes(service, count);
  const look = await medianOf(async () => {
    for (const worker of workers) await worker.doNext();
  });
  const sweep = await medianOf(() => nodes.settle());
  const found = await medianOf(async () => {
    await service.query(
      `UPDATE node SET lane = node_id, due_at = clock_timestamp() WHERE node_id = (SELECT max(node_id) FROM node)`,
    );
    await nodes.doNext();
  });
  // Every node is touched: one lane each.
  await service.query('UPDATE node SET lane = node_id, due_at = clock_timestamp()');
  nodes.start();
  const all = await timed(() =>
    until(service, 'SELECT NOT EXISTS (SELECT FROM node WHERE due_at IS NOT NULL) AS done'),
  );
  // As many in one lane, and one in another.
  await service.query(`UPDATE node SET lane = 'full', due_at = clock_timestamp() WHERE node_name <> 'node-1'`);
  nodes.wake();
  const beside = await timed(async () => {
    await service.query(`UPDATE node SET lane = 'other', due_at = clock_timestamp() WHERE node_name = 'node-1'`);
    nodes.wake();
    await until(service, `SELECT due_at IS NULL AS done FROM node WHERE node_name = 'node-1'`);
  });
  const drained =
    beside +
    (await timed(() => until(service, 'SELECT NOT EXISTS (SELECT FROM node WHERE due_at IS NOT NULL) AS done')));
  await nodes.stop();
  await service.stop();
  return {
    'a look of all four machines, nothing due': look,
    'a sweep and a look, nothing due': sweep,
    'a touch, and the step it asks for': found,
    'a touch of every node, until all are done': all,
    'one node beside all others in another lane': beside,
    'all nodes in one lane, until all are done': drained,
  };
}

const points = new Map<string, { size: number; ms: number }[]>();
for (const size of sizes) {
  for (const [name, ms] of Object.entries(await measureSize(size)))
    points.set(name, [...(points.get(name) ?? []), { size, ms }]);
}
console.log(
  `${''.padEnd(46)}${sizes.map((size) => `${size.toLocaleString('en')} nodes`.padStart(15)).join('')}   exponent`,
);
for (const [name, all] of points) {
  console.log(
    `${name.padEnd(46)}${all.map(({ ms }) => `${ms.toFixed(2)} ms`.padStart(15)).join('')}   ${exponentOf(all).toFixed(2)}`,
  );
}
process.exit(0);
