import { it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createDatabase, startNats } from '@atoll/testing';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import pg from 'pg';
import { startPlatform, type Topology } from '../running-platform.js';

const topology: Topology = 'services';

it('a forged event of a team with the greatest revision there is changes nothing and freezes nobody', async () => {
  const database = await createDatabase();
  // With a user of this story's own, which may do anything.
  const broker = await startNats();
  const platform = await startPlatform(topology, { DATABASE_URL: database.url, NATS_URL: broker.url });
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  const call = async (method: string, path: string, body: object): Promise<Record<string, unknown>> => {
    const headers = { authorization: `Bearer ${platform.adminKey}`, 'content-type': 'application/json' };
    const answer = await fetch(`${platform.url}/api${path}`, { method, headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as Record<string, unknown>;
  };
  const untilKnownAs = async (name: string) => {
    for (const service of ['billing', 'gpuaas']) {
      while ((await client.query(`SELECT FROM ${service}.team WHERE name = $1`, [name])).rowCount === 0) await delay(20);
    }
  };
  let nats: NatsConnection | undefined;
  try {
    while (!platform.output().includes('Atoll is ready')) await delay(20);
    nats = await connect({ servers: broker.url });
    const { id: team_id } = await call('POST', '/team', { name: 'Before' });
    await untilKnownAs('Before');
    const payload = { team_id, revision: Number.MAX_SAFE_INTEGER, name: 'Forged', is_suspended: true, status: 'active', workspaces: [] };
    const forged = { id: randomUUID(), name: 'teams.team_changed', payload, occurredAt: new Date().toISOString(), publisher: 'teams' };
    await nats.request('events.teams.team_changed', JSON.stringify(forged), { timeout: 60_000 });
    for (const service of ['billing', 'gpuaas']) {
      const refused = new RegExp(`^(?=.*"service":"${service}").*events\\.teams\\.team_changed is ignored: no ATOLL_BUS_SECRET`, 'm');
      while (!refused.test(platform.output())) await delay(20);
    }
    await call('PUT', `/team/${String(team_id)}`, { name: 'After' });
    await untilKnownAs('After');
  } finally {
    await nats?.close();
    await client.end();
    await platform.stop();
    await broker.stop();
    await database.drop();
  }
}, 120_000);
