import { expect, it } from '@jest/globals';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApiKey } from '@atoll/api-keys';
import { timeoutFactor } from '@atoll/testing';
import { until } from './client.js';
import { killEverything } from './mortal-platform.js';
import { OwnPlatform } from './own-platform.js';
import type { Topology } from './running-platform.js';
import { recoveryMs, subscriber } from './subscriber.js';

const topology = (process.env.ATOLL_TOPOLOGY ?? 'one-process') as Topology;
const own = new OwnPlatform();

it(
  'everything comes back and goes on where all processes are killed at once, PostgreSQL too',
  async () => {
    own.folder = mkdtempSync(join(tmpdir(), 'atoll-e2e-'));
    const env = { ATOLL_DATA_DIR: own.folder, ATOLL_ADMIN_KEY: createApiKey() };
    let platform = await own.start(topology, env);
    const place = {
      get url() {
        return platform.url;
      },
      adminKey: env.ATOLL_ADMIN_KEY,
    };
    const team = await subscriber(place);
    const web = await team.create('web');
    await team.runs(web.pod_name);
    const { service_id } = await team.expose(web.pod_name);
    const pods = [web, await team.create('one'), await team.create('two')];
    await killEverything(platform);

    const startMs = performance.now();
    platform = await own.start(topology, env);
    const readyMs = performance.now() - startMs;
    for (const { pod_name } of pods) await team.runs(pod_name);
    const { body: service } = await until(
      () => team.service(service_id),
      ({ body }) => body.status === 'active',
      recoveryMs,
    );
    await until(
      () => fetch(service.url).catch(() => null),
      (answer) => answer?.ok === true,
      recoveryMs,
    );
    const doneMs = performance.now() - startMs;
    process.stdout.write(`Killed at once: ready after ${Math.round(readyMs)} ms, all work done after ${Math.round(doneMs)} ms.\n`);
    await team.holds(pods);
    for (const { pod_name } of pods) expect((await team.runs(pod_name)).body.restarts).toBe(0);
  },
  180_000 * timeoutFactor,
);
