import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type { Installation } from './installation.js';

const gpusPerNode = 8;
const atOnce = 4;

/** Whom the slices go to. */
export interface Subscriber {
  team_id: string;
  workspace_id: string;
}

interface Made {
  node_id: string;
  gpus: { gpu_id: string }[];
}

const cutInSeven = { sharing_mode: 'Spatial', mechanism: 'mig', profiles: ['1g.10gb'] };

/**
 * A pool of so many A100, cut into seven each unless other terms are given, at rest, all made through the API. Gives
 * back its id.
 */
export async function makePool(
  platform: Installation,
  client: pg.Client,
  gpus: number,
  terms: object = cutInSeven,
): Promise<string> {
  const { region_id } = await platform.send<{ region_id: string }>('POST', '/region', { region_name: 'bench' });
  const { gpuaas_id } = await platform.send<{ gpuaas_id: string }>('POST', '/gpuaas', { region_id, name: 'bench' });
  const made = await inTurn(atOnce, Math.ceil(gpus / gpusPerNode), async (at) => {
    const count = Math.min(gpusPerNode, gpus - at * gpusPerNode);
    const node = { gpuaas_id, node_name: `node-${at}`, gpus: [{ board: 'A100-80GB', count }] };
    return platform.send<Made>('POST', '/gpuaas/node', node);
  });
  await inTurn(atOnce, made.length, (at) => platform.send('POST', `/gpuaas/node/${made[at]?.node_id}/initialise`));
  await until(client, `SELECT NOT EXISTS (SELECT FROM gpuaas.node WHERE state <> 'ready') AS done`);
  const { pool_id } = await platform.send<{ pool_id: string }>('POST', '/gpuaas/pool/create', {
    gpuaas_id,
    pool_name: 'bench',
    gpu_ids: made.flatMap((node) => node.gpus.map(({ gpu_id }) => gpu_id)),
    ...terms,
  });
  await until(client, `SELECT NOT EXISTS (SELECT FROM gpuaas.gpu WHERE state <> 'spatial') AS done`);
  return pool_id;
}

export async function makeSubscribers(platform: Installation, client: pg.Client, count: number): Promise<Subscriber[]> {
  // The platform makes one team of a user at a time, and refuses those that would wait for long.
  const subscribers = await inTurn(1, count, async (at) => {
    const { id, workspaces } = await platform.send<{ id: string; workspaces: { id: string }[] }>('POST', '/team', {
      name: `Subscriber ${at}`,
    });
    return { team_id: id, workspace_id: workspaces[0]?.id ?? '' };
  });
  await until(client, `SELECT count(*) >= ${count} AS done FROM gpuaas.team WHERE revision > 0`);
  return subscribers;
}

/** Asks until `done` is true; throws where that takes minutes. */
export async function until(client: pg.Client, question: string, everyMs = 10): Promise<void> {
  const endMs = Date.now() + 300_000;
  while (Date.now() < endMs) {
    const { rows } = await client.query<{ done: boolean }>(question);
    if (rows[0]?.done) return;
    await delay(everyMs);
  }
  throw new Error(`It does not come about: ${question}`);
}

/**
 * Does `work` for each number up to `count`, so many at one time; gives back what came of it, in the order of the
 * numbers.
 */
export async function inTurn<T>(workers: number, count: number, work: (at: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  const numbers = Array.from({ length: count }, (_, at) => at).values();
  const worker = async () => {
    for (const at of numbers) results[at] = await work(at);
  };
  await Promise.all(Array.from({ length: workers }, worker));
  return results;
}
