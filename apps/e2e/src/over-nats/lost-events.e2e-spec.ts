import { it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createDatabase, startNats } from '@atoll/testing';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import pg from 'pg';
import { startPlatform, type Topology } from '../running-platform.js';

const topology: Topology = 'services';
const resources = 300;
const wipes = 6;
/** Deletes the stream of events with all that it holds. A busy machine takes longer than the second that a request has by default. */
const wipe = (nats: NatsConnection) => nats.request('$JS.API.STREAM.DELETE.ATOLL_EVENTS', '', { timeout: 60_000 });
const [from, to] = ['2025-10-01T00:00:00', '2025-11-01T00:00:00'];

/** One hour of one GPU, as two events of gpuaas in its outbox. */
async function use(client: pg.Client, resource: number, fact: object): Promise<void> {
  for (const [time, quantity] of [
    [`${from}.000Z`, '1'],
    ['2025-10-01T01:00:00.000Z', '0'],
  ]) {
    const facts = [{ ...fact, id: randomUUID(), resource_id: `gpuaas_pool:lost-${resource}`, time, quantity }];
    await client.query(`INSERT INTO gpuaas.outbox (id, event_name, payload) VALUES ($1, 'gpuaas.usage_told', $2)`, [
      randomUUID(),
      JSON.stringify({ facts }),
    ]);
    await client.query('NOTIFY "outbox.gpuaas"');
  }
}

it('every bill is exact in the end when the store of the broker is wiped under load', async () => {
  const database = await createDatabase();
  // With a user of this story's own, which may do anything.
  const broker = await startNats();
  const platform = await startPlatform(topology, { DATABASE_URL: database.url, NATS_URL: broker.url });
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  let nats: NatsConnection | undefined;
  const call = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const headers = { authorization: `Bearer ${platform.adminKey}`, ...(body && { 'content-type': 'application/json' }) };
    const answer = await fetch(`${platform.url}/api${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  };
  try {
    while (!platform.output().includes('Atoll is ready')) await delay(20);
    nats = await connect({ servers: broker.url });
    const team = await call<{ id: string; workspaces: { id: string }[] }>('POST', '/team', { name: 'Billed' });
    const sku = 'gpu.lost';
    await call('POST', '/price', { sku, unit: 'vgpu', unit_price: '1', valid_from: '2025-01-01T00:00:00Z', force: true });
    const fact = { kind: 'gpuaas_pool', sku, team_id: team.id, workspace_id: team.workspaces[0]?.id, pool_id: '1' };
    for (let resource = 0; resource < resources; resource += 1) {
      await use(client, resource, fact);
      if (resource % (resources / wipes) === 0) await wipe(nats);
      await delay(10);
    }
    // Nothing is published after this one by which a consumer would see that it misses something.
    await wipe(nats);
    const bill = () => call<{ total_cost: string }>('GET', `/team-billing/${team.id}/${from}/${to}/monthly/utc`);
    while (Number((await bill()).total_cost) !== resources) await delay(250);
  } finally {
    await nats?.close();
    await client.end();
    await platform.stop();
    await broker.stop();
    await database.drop();
  }
}, 180_000);
