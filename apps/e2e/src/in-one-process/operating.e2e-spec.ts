import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { createDatabase, freePort, type TestDatabase } from '@atoll/testing';
import { Sealer } from '@atoll/seal';
import pg from 'pg';
import { startPlatform, type RunningPlatform } from '../running-platform.js';

const password = 'correct horse battery staple';
const [old, fresh] = [Sealer.createKeys('old'), Sealer.createKeys('new')];
const adminKey = createApiKey();

let folder: string;
let database: TestDatabase;
/** The same at each start: the issuer of access tokens is named by it. */
let port: number;
let platform: RunningPlatform | undefined;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-e2e-'));
  database = await createDatabase();
  port = await freePort();
});
afterAll(async () => {
  await platform?.stop();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

const env = (sealKeys: string) => ({
  PORT: String(port),
  ATOLL_DATA_DIR: folder,
  DATABASE_URL: database.url,
  ATOLL_ADMIN_KEY: adminKey,
  ATOLL_SEAL_KEYS: sealKeys,
});

async function start(sealKeys: string): Promise<void> {
  await platform?.stop();
  platform = await startPlatform('one-process', env(sealKeys));
}

async function ask<Body>(method: string, path: string, body?: object, key = adminKey): Promise<Body> {
  const answer = await fetch(`${platform?.url}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return (text === '' ? {} : JSON.parse(text)) as Body;
}

async function untilStatus(path: string, wanted: string): Promise<void> {
  for (let status = ''; status !== wanted; await delay(50)) ({ status } = await ask<{ status: string }>('GET', path));
}

/** A host that holds a tenant, and the operator's session with an authenticator begun. */
async function makeSecrets(): Promise<{ instanceId: string; token: string }> {
  const { region_id } = await ask<{ region_id: string }>('POST', '/region', { region_name: 'reseal' });
  const specs = { gpu_model: 'H100-80GB', gpu_count: 8, cpu_cores: 64, memory_gb: 512 };
  const node = { name: 'metal-01', region_id, host: 'metal-01.example', driver: 'simulated', credential: { password: 'operator' }, specs };
  const { node_id } = await ask<{ node_id: string }>('POST', '/baremetal/node', node);
  await untilStatus(`/baremetal/node/${node_id}`, 'Available');
  const { id: team_id } = await ask<{ id: string }>('POST', '/team', { name: 'Secrets' });
  const request = { team_id, region_id, name: 'training', specs: { gpu_count: 8 } };
  const { instance_id: instanceId } = await ask<{ instance_id: string }>('POST', '/baremetal/request', request);
  await untilStatus(`/baremetal/${instanceId}`, 'Active');
  const { url } = await ask<{ url: string }>('POST', '/user/login-link', { email: 'admin@atoll.local' });
  await ask('POST', '/user/link', { token: url.split('#')[1], password });
  const { access_token: token } = await ask<{ access_token: string }>('POST', '/user/login', { email: 'admin@atoll.local', password });
  await ask('POST', '/user/second-factor/begin', undefined, token);
  return { instanceId, token };
}

/** Columns of the database with texts that the old key sealed. */
async function underTheOldKey(): Promise<string[]> {
  const client = new pg.Client(database.url);
  await client.connect();
  const { rows: columns } = await client.query<{ table: string; column: string }>(
    `SELECT format('%I.%I', table_schema, table_name) AS table, quote_ident(column_name) AS column FROM information_schema.columns
     JOIN information_schema.tables USING (table_schema, table_name)
     WHERE table_type = 'BASE TABLE' AND data_type IN ('text', 'character varying') AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
  );
  const found: string[] = [];
  for (const { table, column } of columns) {
    const { rowCount } = await client.query(`SELECT FROM ${table} WHERE ${column} LIKE 'v1.old.%' LIMIT 1`);
    if (rowCount) found.push(`${table}.${column}`);
  }
  await client.end();
  return found.toSorted();
}

it('a sealing key is replaced: what it sealed is sealed again beside the running platform, which then runs without it', async () => {
  await start(old);
  const { instanceId, token } = await makeSecrets();
  const credentials = () => ask<{ ssh_password: string }>('GET', `/baremetal/${instanceId}/credentials`);
  const { ssh_password } = await credentials();
  expect(await underTheOldKey()).toEqual([
    'gpuaas.baremetal_instance.password',
    'gpuaas.baremetal_instance.proof_key',
    'gpuaas.baremetal_node.credential',
    'pods.ssh_host_key.sealed',
    'teams.second_factor.sealed',
    'teams.signing_key.sealed',
  ]);

  await start(`${fresh},${old}`);
  const command = promisify(execFile)(process.execPath, ['dist/apps/platform/src/reseal.js'], {
    env: { ...process.env, ...env(`${fresh},${old}`) },
  });
  const { stdout } = await command;
  expect(stdout).toContain('teams: signing_key.sealed: 1 sealed again\n');
  expect(stdout).toMatch(/Everything is sealed under the first key. The others may be taken away.\n$/);
  expect(await underTheOldKey()).toEqual([]);

  await start(fresh);
  expect((await credentials()).ssh_password).toBe(ssh_password);
  // The key that signs is the one of before: nobody has to log in again.
  expect(await ask('GET', '/user/profile', undefined, token)).toMatchObject({ email: 'admin@atoll.local' });
  await ask('DELETE', `/baremetal/${instanceId}`);
  await untilStatus(`/baremetal/${instanceId}`, 'Released');
}, 120_000);

it('nodes in maintenance are counted by their cause in the figures of the platform', async () => {
  const { data } = await ask<{ data: { node_id: string }[] }>('GET', '/baremetal/node');
  const counted = async (cause: string) => {
    const figures = await (await fetch(`${platform?.url}/metrics`)).text();
    return new RegExp(`^atoll_baremetal_nodes_in_maintenance{service="gpuaas",cause="${cause}"} (\\d+)$`, 'm').exec(figures)?.[1];
  };
  expect([await counted('operator'), await counted('failures')]).toEqual(['0', '0']);
  await ask('PUT', `/baremetal/node/${data[0]?.node_id}`, { maintenance: true });
  expect([await counted('operator'), await counted('failures')]).toEqual(['1', '0']);
});

it('a key that is missing is named, with the rows that need it', async () => {
  const lost = Sealer.createKeys('elsewhere');
  const command = promisify(execFile)(process.execPath, ['dist/apps/platform/src/reseal.js'], { env: { ...process.env, ...env(lost) } });
  const { code, stderr } = await command.then(
    () => ({ code: 0, stderr: '' }),
    (error: { code: number; stderr: string }) => error,
  );
  expect(code).toBe(1);
  expect(stderr).toMatch(/gpuaas: baremetal_node\.credential of \d+: .*"new".*ATOLL_SEAL_KEYS does not hold/);
  expect(stderr).toMatch(/Keep the other keys, and add the missing ones\.\n$/);
});
