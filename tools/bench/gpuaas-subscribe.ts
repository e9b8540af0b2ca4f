import { join } from 'node:path';
import { createApiKey } from '@atoll/api-keys';
import type pg from 'pg';
import { clear, fillFloor, makeFloor, type HeldRow } from './gpuaas-floor.js';
import { inTurn, makePool, makeSubscribers, until, type Subscriber } from './gpuaas-inventory.js';
import { Installation } from './installation.js';
import { comparisonOf, median, type Comparison } from './measure.js';
import { withClient } from './with-client.js';

const slicesPerGpu = 7;
const teams = 20;

export interface SubscribeLoad {
  gpus: number;
  callers: number;
  /** For each number of vGPUs. */
  fills: number;
  vgpus: readonly number[];
}

export interface SubscribeFigures {
  vgpus: number;
  /** Subscriptions a second until the pool is full, beside the rows that accepting them writes. */
  accepted: Comparison;
  /** Until the last is active, beside all rows that are added until then. */
  activated: Comparison;
  fullMs: number;
  activeMs: number;
}

interface Fill {
  ids: string[];
  fullMs: number;
  activeMs: number;
}

interface Round {
  fill: Fill;
  accepting: number;
  whole: number;
}

/**
 * Everybody subscribes at once until nothing is left, and the same rows are written by the barest code, in turn. The
 * first round does not count.
 */
export async function measureSubscribing(
  url: string,
  folder: string,
  load: SubscribeLoad,
): Promise<SubscribeFigures[]> {
  const platform = await Installation.start(url, join(folder, 'subscribe'), createApiKey(), load.callers);
  const figures = await withClient(url, async (client) => {
    const poolId = await makePool(platform, client, load.gpus);
    const subscribers = await makeSubscribers(platform, client, teams);
    await makeFloor(client);
    const result: SubscribeFigures[] = [];
    for (const vgpus of load.vgpus) {
      const rounds: Round[] = [];
      for (let round = -1; round < load.fills; round++) {
        const measured = await measureRound(platform, client, url, load, { poolId, subscribers, vgpus });
        if (round >= 0) rounds.push(measured);
      }
      result.push(figuresOf(vgpus, rounds));
    }
    return result;
  });
  await platform.stop();
  return figures;
}

interface Asked {
  poolId: string;
  subscribers: readonly Subscriber[];
  vgpus: number;
}

async function measureRound(
  platform: Installation,
  client: pg.Client,
  url: string,
  load: SubscribeLoad,
  asked: Asked,
): Promise<Round> {
  await clear(client, 'gpuaas');
  const fill = await fillPool(platform, client, load, asked);
  await requireRight(platform, client, load, asked, fill.ids);
  const rows = await heldRows(client);
  await quiet(client);
  const floor = async (isWhole: boolean) => {
    await clear(client, 'floor');
    return fillFloor(url, rows, load.callers, isWhole);
  };
  return { fill, accepting: await floor(false), whole: await floor(true) };
}

function figuresOf(vgpus: number, rounds: readonly Round[]): SubscribeFigures {
  const each = ({ ids }: Fill, ms: number) => (1000 * ids.length) / ms;
  return {
    vgpus,
    accepted: comparisonOf(rounds.map(({ fill, accepting }) => [each(fill, fill.fullMs), accepting])),
    activated: comparisonOf(rounds.map(({ fill, whole }) => [each(fill, fill.activeMs), whole])),
    fullMs: median(rounds.map(({ fill }) => fill.fullMs)),
    activeMs: median(rounds.map(({ fill }) => fill.activeMs)),
  };
}

/** Each caller asks for the next one when it has the last, until it is refused. Any other answer is a fault. */
async function fillPool(
  platform: Installation,
  client: pg.Client,
  { callers }: SubscribeLoad,
  asked: Asked,
): Promise<Fill> {
  const ids: string[] = [];
  const startedAt = performance.now();
  let fullMs = 0;
  await inTurn(callers, callers, async (caller) => {
    for (;;) {
      const id = await subscribe(platform, asked, caller);
      if (id === undefined) return;
      ids.push(id);
      fullMs = performance.now() - startedAt;
    }
  });
  await until(client, `SELECT NOT EXISTS (SELECT FROM gpuaas.subscription WHERE state <> 'active') AS done`);
  return { ids, fullMs, activeMs: performance.now() - startedAt };
}

/** Its id; undefined where the pool has no room. */
async function subscribe(
  platform: Installation,
  { poolId, subscribers, vgpus }: Asked,
  caller: number,
): Promise<string | undefined> {
  const subscriber = subscribers[caller % subscribers.length];
  const json = JSON.stringify({ ...subscriber, pool_id: poolId, vgpus, name: 'training' });
  const { status, body } = await platform.ask('POST', '/gpuaas/pool/subscribe', json);
  if (status === 202) return (JSON.parse(body.toString()) as { subscription_id: string }).subscription_id;
  if (status === 422 && body.includes('insufficient_capacity')) return undefined;
  throw new Error(`Subscribing answered ${status}: ${body.toString('utf8', 0, 500)}`);
}

/** No slice is held twice, none is lost, what was accepted is what is there, and who comes later is refused. */
async function requireRight(
  platform: Installation,
  client: pg.Client,
  { gpus, callers }: SubscribeLoad,
  asked: Asked,
  ids: readonly string[],
): Promise<void> {
  const fitting = Math.floor((gpus * slicesPerGpu) / asked.vgpus);
  const { rows } = await client.query<Record<string, number>>(
    `SELECT (SELECT count(*)::int FROM gpuaas.subscription WHERE state = 'active' AND subscription_id = ANY ($1) AND vgpus = $2) AS subscriptions,
       (SELECT count(*)::int FROM gpuaas.subscription) AS all_subscriptions,
       (SELECT count(*)::int FROM gpuaas.lease) AS leases,
       (SELECT count(*)::int FROM (SELECT DISTINCT gpu_id, slot_start FROM gpuaas.lease) places) AS places,
       (SELECT coalesce(sum(bit_count(slots_used::bit(64))), 0)::int FROM gpuaas.gpu) AS slots_used,
       (SELECT count(*)::int FROM (SELECT FROM gpuaas.lease GROUP BY subscription_id HAVING count(*) = $2) whole) AS whole`,
    [ids, asked.vgpus],
  );
  const leases = fitting * asked.vgpus;
  const right = {
    subscriptions: fitting,
    all_subscriptions: fitting,
    leases,
    places: leases,
    slots_used: leases,
    whole: fitting,
  };
  const refused = await inTurn(callers, callers, (caller) => subscribe(platform, asked, caller));
  if (JSON.stringify(rows[0]) !== JSON.stringify(right) || refused.some((id) => id !== undefined)) {
    throw new Error(
      `The pool is not as it should be: ${JSON.stringify({ found: rows[0], right, later: refused.filter(Boolean) })}`,
    );
  }
}

async function heldRows(client: pg.Client): Promise<HeldRow[]> {
  const { rows } = await client.query<HeldRow>(
    `SELECT team_id, workspace_id, pool_id, request_id, array_agg(gpu_id ORDER BY lease_id) AS gpu_ids, array_agg(slot_start ORDER BY lease_id) AS starts
     FROM gpuaas.subscription JOIN gpuaas.lease USING (subscription_id) GROUP BY subscription_id ORDER BY subscription_id`,
  );
  return rows;
}

/** What was told has been heard: the platform leaves the machine to the floor. */
async function quiet(client: pg.Client): Promise<void> {
  await until(
    client,
    'SELECT NOT EXISTS (SELECT FROM gpuaas.outbox) AND NOT EXISTS (SELECT FROM gpuaas.capacity_change) AS done',
  );
}
