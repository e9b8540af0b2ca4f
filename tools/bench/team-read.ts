import { isDeepStrictEqual } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { freePort } from '@atoll/testing';
import { compare, type Comparison, type Load, type Target } from './measure.js';
import { firstLine, start, stopAll, untilOperator, untilReady } from './processes.js';

export interface TeamReadFigures {
  oneProcess: Comparison;
  overNats: Comparison;
}

const keyPepper = 'a pepper for benchmarks only';
const busSecret = 'a secret for benchmarks only';

interface Created {
  id: string;
  members: { api_key: string }[];
}

/** A team of five with a key, made through the API. */
async function createTeam(url: string, adminKey: string): Promise<{ id: string; key: string }> {
  const members = ['ada', 'grace', 'alan', 'edsger'].map((name) => ({
    email: `${name}@example.com`,
    name,
    role: 'member',
  }));
  const response = await fetch(`${url}/api/team`, {
    method: 'POST',
    headers: { authorization: `Bearer ${adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Research', description: 'Protein folding', members }),
  });
  const team = (await response.json()) as Created;
  return { id: team.id, key: team.members[1]?.api_key ?? '' };
}

async function requireSameAnswer(product: Target, floor: Target): Promise<void> {
  const [one, other] = await Promise.all(
    [product, floor].map(async ({ url, headers }) => (await fetch(url, headers && { headers })).json()),
  );
  if (!isDeepStrictEqual(one, other))
    throw new Error(`The floor answers something else than the product: ${JSON.stringify({ one, other })}`);
}

/**
 * `GET /api/team/{id}` with a key, limits off, beside a bare Fastify route of the same query; in one process, and over
 * NATS.
 */
export async function measureTeamRead(
  databaseUrl: string,
  natsUrl: string,
  dataDir: string,
  load: Load,
  rounds: number,
): Promise<TeamReadFigures> {
  const adminKey = createApiKey();
  const env = {
    DATABASE_URL: databaseUrl,
    NATS_URL: natsUrl,
    ATOLL_LIMITS: 'off',
    ATOLL_ADMIN_KEY: adminKey,
    ATOLL_KEY_PEPPER: keyPepper,
    ATOLL_BUS_SECRET: busSecret,
  };
  const measureOne = async (productPort: number, floorPort: string) => {
    const product = `http://127.0.0.1:${productPort}`;
    await untilReady(`${product}/readyz`);
    await untilOperator(product, adminKey);
    const { id, key } = await createTeam(product, adminKey);
    const productTarget = {
      name: 'product',
      url: `${product}/api/team/${id}`,
      headers: { authorization: `Bearer ${key}` },
    };
    const floorTarget = { name: 'floor', url: `http://127.0.0.1:${floorPort}/api/team/${id}` };
    await requireSameAnswer(productTarget, floorTarget);
    const comparison = await compare(productTarget, floorTarget, load, rounds);
    await stopAll();
    return comparison;
  };

  const platformPort = await freePort();
  start('apps/platform/src/main.js', [], { ...env, PORT: String(platformPort), ATOLL_DATA_DIR: dataDir });
  const oneProcess = await measureOne(platformPort, await firstLine(start('tools/bench/floor.js', ['http'], env)));

  const gatewayPort = await freePort();
  start('apps/teams/src/main.js', [], { ...env, HEALTH_PORT: '0' });
  start('apps/gateway/src/main.js', [], { ...env, PORT: String(gatewayPort) });
  await firstLine(start('tools/bench/floor.js', ['responder'], env));
  const overNats = await measureOne(gatewayPort, await firstLine(start('tools/bench/floor.js', ['gateway'], env)));
  return { oneProcess, overNats };
}
