import pg from 'pg';
import { createApiKey, digestApiKey } from '@atoll/api-keys';
import { credentials } from '@atoll/contracts/teams';
import { NatsLink, Rpc, RpcModule, systemContext } from '@atoll/rpc';
import { NestFactory } from '@nestjs/core';
import { freePort } from '@atoll/testing';
import { median } from './measure.js';
import { start, stop, untilReady } from './processes.js';

const keyPepper = 'a pepper for benchmarks only';
const busSecret = 'a secret for benchmarks only';
/** Real keys among the filler, asked for in turn so that no cache but the database's holds them. */
const askedKeys = 500;
const rounds = 10;

export interface VerificationFigure {
  keys: number;
  medianMs: number;
}

function urlOf(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

/**
 * A database with this many keys, made by the service's own migrations and filled in SQL. Returns the digests to ask
 * for.
 */
async function fill(databaseUrl: string, keys: number): Promise<string[]> {
  const digests = Array.from({ length: Math.min(askedKeys, keys) }, () => digestApiKey(createApiKey(), keyPepper));
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`SET search_path TO teams`);
    const { rows } = await client.query<{ id: string }>(
      `INSERT INTO "user" (id, email, name) VALUES (gen_random_uuid(), 'bench@example.com', 'Bench') RETURNING id`,
    );
    const user = rows[0]?.id;
    await client.query(
      `INSERT INTO api_key (id, user_id, digest, mask) SELECT gen_random_uuid(), $1, sha256(n::text::bytea), 'atl_filler' FROM generate_series(1, $2::int) n`,
      [user, keys - digests.length],
    );
    await client.query(
      `INSERT INTO api_key (id, user_id, digest, mask) SELECT gen_random_uuid(), $1, decode(d, 'hex'), 'atl_asked' FROM unnest($2::text[]) d`,
      [user, digests],
    );
    await client.query('VACUUM ANALYZE api_key');
  } finally {
    await client.end();
  }
  return digests;
}

interface Candidate {
  keys: number;
  digests: string[];
  durationsMs: number[];
}

async function askAll(rpc: Rpc, { digests, durationsMs }: Candidate): Promise<void> {
  for (const digest of digests) {
    const startedAt = performance.now();
    await rpc.call(credentials.verify, { digest }, systemContext('gateway'));
    durationsMs.push(performance.now() - startedAt);
  }
}

/**
 * How long the teams service takes to answer for a key that no gateway has cached, with few and with many keys: a
 * database and a service process for each, asked in turn, one call at a time.
 */
export async function measureKeyVerification(
  serverUrl: string,
  natsUrl: string,
  sizes: readonly number[],
): Promise<VerificationFigure[]> {
  const candidates: Candidate[] = [];
  const ask = async (candidate: Candidate) => {
    const databaseUrl = urlOf(serverUrl, `bench_${candidate.keys}`);
    const healthPort = String(await freePort());
    const service = start('apps/teams/src/main.js', [], {
      DATABASE_URL: databaseUrl,
      NATS_URL: natsUrl,
      ATOLL_KEY_PEPPER: keyPepper,
      ATOLL_BUS_SECRET: busSecret,
      HEALTH_PORT: healthPort,
    });
    await untilReady(`http://127.0.0.1:${healthPort}/readyz`);
    if (candidate.digests.length === 0) candidate.digests = await fill(databaseUrl, candidate.keys);
    const link = NatsLink.open({ servers: natsUrl });
    const client = await NestFactory.createApplicationContext(RpcModule.forNats({ link, secret: busSecret }), {
      logger: false,
    });
    const warmUp = { ...candidate, durationsMs: [] };
    await askAll(client.get(Rpc), warmUp);
    await askAll(client.get(Rpc), candidate);
    await client.close();
    await link.close();
    await stop(service);
  };
  const admin = new pg.Client({ connectionString: serverUrl });
  await admin.connect();
  for (const keys of sizes) {
    await admin.query(`CREATE DATABASE bench_${keys}`);
    candidates.push({ keys, digests: [], durationsMs: [] });
  }
  for (let round = 0; round < rounds; round++) for (const candidate of candidates) await ask(candidate);
  for (const keys of sizes) await admin.query(`DROP DATABASE bench_${keys}`);
  await admin.end();
  return candidates.map(({ keys, durationsMs }) => ({ keys, medianMs: median(durationsMs) }));
}
