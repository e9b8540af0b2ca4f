import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createApiKey } from '@atoll/api-keys';
import { freePort } from '@atoll/testing';
import type pg from 'pg';
import { inTurn, makePool, makeSubscribers } from './gpuaas-inventory.js';
import { Installation } from './installation.js';
import { median, percentile } from './measure.js';
import { withClient } from './with-client.js';

const commits = 4;
const firstPort = 31_000;
const callers = 100;
const pods = 10;
const everyMs = 2;
const patienceMs = 60_000;

export interface ExposeFigures {
  /** From the request until the service is active, its listener open: milliseconds. */
  activeMs: { p50: number; p99: number };
  /** A bare listener and as many commits as the product makes: milliseconds. */
  floorMs: { p50: number; p99: number };
  contention: { asked: number; ports: number; won: number; refused: number; ms: number };
}

interface Exposed {
  service_id: string;
  status: string;
}

/** Services exposed one after the other, with the floor in turn, and then many at once for too few ports. */
export async function measureExposing(
  url: string,
  folder: string,
  services: number,
  ports: number,
): Promise<ExposeFigures> {
  const platform = await Installation.start(url, join(folder, 'pods'), createApiKey(), callers);
  const figures = await withClient(url, async (client) => {
    const podNames = await makePods(platform, client);
    await client.query('CREATE SCHEMA floor');
    await client.query(
      'CREATE TABLE floor.step (id bigint GENERATED ALWAYS AS IDENTITY, at timestamptz NOT NULL DEFAULT now())',
    );
    const [product, floor]: [number[], number[]] = [[], []];
    for (let round = -5; round < services; round += 1) {
      const [activeMs, floorMs] = [await exposeOne(platform, podNames[0] ?? '', round), await floorOnce(client)];
      if (round < 0) continue;
      product.push(activeMs);
      floor.push(floorMs);
    }
    return { activeMs: spread(product), floorMs: spread(floor), contention: await contend(platform, podNames, ports) };
  });
  await platform.stop();
  return figures;
}

/** They run, each on one slice of a subscription. */
async function makePods(platform: Installation, client: pg.Client): Promise<string[]> {
  const pool_id = await makePool(platform, client, 2);
  const [{ team_id } = { team_id: '' }] = await makeSubscribers(platform, client, 1);
  const asked = { team_id, pool_id, vgpus: pods };
  const { subscription_id } = await platform.send<{ subscription_id: string }>('POST', '/gpuaas/pool/subscribe', asked);
  const body = JSON.stringify({ team_id, subscription_id, name: 'web', image: 'nginx' });
  return inTurn(1, pods, async () => {
    // pods may not have been told of the team yet.
    for (; ; await delay(50)) {
      const { status, body: answer } = await platform.ask('POST', '/pods', body);
      if (status !== 202) continue;
      const { pod_name } = JSON.parse(answer.toString()) as { pod_name: string };
      await untilStatus(() => platform.send<{ status: string }>('GET', `/pods/${pod_name}`), 'running');
      return pod_name;
    }
  });
}

async function exposeOne(platform: Installation, pod_name: string, round: number): Promise<number> {
  const startMs = performance.now();
  const terms = { pod_name, service_name: `web-${round + 5}`, port: 8080, protocol: 'TCP' };
  const { service_id } = await platform.send<Exposed>('POST', '/pods/expose-service', terms);
  await untilStatus(
    () => platform.send<Exposed>('GET', `/pods/expose-service/status?service_id=${service_id}`),
    'active',
  );
  const tookMs = performance.now() - startMs;
  await platform.send('DELETE', `/pods/delete-exposed-service/${service_id}`);
  return tookMs;
}

async function floorOnce(client: pg.Client): Promise<number> {
  const port = await freePort();
  const startMs = performance.now();
  for (let commit = 0; commit < commits; commit += 1) await client.query('INSERT INTO floor.step DEFAULT VALUES');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const tookMs = performance.now() - startMs;
  await new Promise((resolve) => server.close(resolve));
  return tookMs;
}

/** Each port is asked for twice. */
async function contend(
  platform: Installation,
  podNames: readonly string[],
  ports: number,
): Promise<ExposeFigures['contention']> {
  const startMs = performance.now();
  const statuses = await inTurn(callers, 2 * ports, async (at) => {
    const pod_name = podNames[at % podNames.length];
    const terms = {
      pod_name,
      service_name: `many-${at}`,
      port: 8080,
      protocol: 'TCP',
      external_port: firstPort + (at % ports),
    };
    return (await platform.ask('POST', '/pods/expose-service', JSON.stringify(terms))).status;
  });
  const ms = performance.now() - startMs;
  const count = (wanted: number) => statuses.filter((status) => status === wanted).length;
  return { asked: 2 * ports, ports, won: count(202), refused: count(409), ms };
}

async function untilStatus(read: () => Promise<{ status: string }>, wanted: string): Promise<void> {
  for (const endMs = Date.now() + patienceMs; (await read()).status !== wanted; await delay(everyMs)) {
    if (Date.now() > endMs) throw new Error(`It does not become ${wanted}.`);
  }
}

function spread(values: readonly number[]): { p50: number; p99: number } {
  return { p50: median(values), p99: percentile(values, 0.99) };
}
