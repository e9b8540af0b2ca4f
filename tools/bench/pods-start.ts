import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createApiKey } from '@atoll/api-keys';
import { podmanImage, podmanLacks, startPodman, type Podman } from '@atoll/testing';
import type pg from 'pg';
import { makePool, makeSubscribers } from './gpuaas-inventory.js';
import { Installation } from './installation.js';
import { median, percentile } from './measure.js';
import { withClient } from './with-client.js';

const command = ['sleep', 'infinity'];
const warmUps = 2;
const everyMs = 5;
const patienceMs = 60_000;

interface Spread {
  p50: number;
  p99: number;
}

export interface StartFigures {
  /** From the request until the pod runs: milliseconds. */
  podMs: Spread;
  /** `podman run --detach` of the same image: milliseconds. */
  podmanMs: Spread;
}

/** Why `measureStarts` cannot run here, a sentence; undefined where it can. */
export const startsLack = podmanLacks;

/**
 * Pods of the container driver, started one after the other on an engine that has the image, each beside `podman run`
 * on the same engine.
 */
export async function measureStarts(url: string, folder: string, starts: number): Promise<StartFigures> {
  const podman = await startPodman();
  try {
    const engine = { ATOLL_CLUSTER: 'docker', ATOLL_DOCKER_SOCKETS: podman.socketPath, ATOLL_DOOR_IMAGE: podmanImage };
    const platform = await Installation.start(url, join(folder, 'starts'), createApiKey(), 1, engine);
    const figures = await withClient(url, (client) => inTurn(platform, client, podman, starts));
    await platform.stop();
    return figures;
  } finally {
    await podman.stop();
  }
}

async function inTurn(
  platform: Installation,
  client: pg.Client,
  podman: Podman,
  starts: number,
): Promise<StartFigures> {
  const pool_id = await makePool(platform, client, 1);
  const [{ team_id } = { team_id: '' }] = await makeSubscribers(platform, client, 1);
  const { subscription_id } = await platform.send<{ subscription_id: string }>('POST', '/gpuaas/pool/subscribe', {
    ...{ team_id, pool_id, vgpus: 1 },
  });
  const path = `/gpuaas/pool-subscription?team_id=${team_id}&subscription_id=${subscription_id}`;
  const isActive = async () =>
    (await platform.send<{ data: { status: string }[] }>('GET', path)).data[0]?.status === 'active';
  await until(isActive);
  const [pods, floor]: [number[], number[]] = [[], []];
  for (let round = -warmUps; round < starts; round += 1) {
    const [podMs, floorMs] = [await startPod(platform, { team_id, subscription_id }), await runByHand(podman)];
    if (round < 0) continue;
    pods.push(podMs);
    floor.push(floorMs);
  }
  return { podMs: spread(pods), podmanMs: spread(floor) };
}

async function startPod(platform: Installation, owner: { team_id: string; subscription_id: string }): Promise<number> {
  const body = { ...owner, name: 'job', image: podmanImage, command };
  const startMs = performance.now();
  const { pod_name } = await platform.send<{ pod_name: string }>('POST', '/pods', body);
  await until(async () => (await platform.send<{ status: string }>('GET', `/pods/${pod_name}`)).status === 'running');
  const tookMs = performance.now() - startMs;
  await platform.send('DELETE', `/pods/${pod_name}`);
  await until(async () => (await platform.ask('GET', `/pods/${pod_name}`)).status === 404);
  return tookMs;
}

async function runByHand(podman: Podman): Promise<number> {
  const startMs = performance.now();
  const id = (
    await podman.cli('run', '--detach', '--security-opt', 'no-new-privileges', podmanImage, ...command)
  ).trim();
  const tookMs = performance.now() - startMs;
  await podman.cli('rm', '--force', '--time', '0', id);
  return tookMs;
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (const endMs = Date.now() + patienceMs; !(await isSo()); await delay(everyMs)) {
    if (Date.now() > endMs) throw new Error('It does not come about.');
  }
}

function spread(values: readonly number[]): Spread {
  return { p50: median(values), p99: percentile(values, 0.99) };
}
