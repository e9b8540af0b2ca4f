import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { timeoutFactor } from '@atoll/testing';
import { clusterInUse } from './cluster-in-use.js';

const folder = mkdtempSync(join(tmpdir(), 'atoll-sockets-'));
const [engine, hanging, missing] = [
  join(folder, 'engine.sock'),
  join(folder, 'hanging.sock'),
  join(folder, 'missing.sock'),
];
const answering = createServer((_request, response) => response.end('OK'));
const silent = createServer(() => undefined);
beforeAll(async () => {
  await new Promise<void>((resolve) => answering.listen(engine, resolve));
  await new Promise<void>((resolve) => silent.listen(hanging, resolve));
});
afterAll(() => {
  for (const server of [answering, silent]) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(folder, { recursive: true, force: true });
});

it('an engine that answers and is not used is named, with what uses it', async () => {
  expect(await clusterInUse({}, [missing, hanging, engine], 2_000 * timeoutFactor)).toMatch(
    new RegExp(
      `^simulated, .*answers at ${engine} but is not used:\\s+ATOLL_CLUSTER=docker ATOLL_DOCKER_SOCKETS=${engine} uses it\\.$`,
      's',
    ),
  );
});

it('one that is missing or hangs is not spoken of', async () => {
  expect(await clusterInUse({}, [missing, hanging])).toBe('simulated, for new GPU services');
});

it('the engine in use is named, and nothing is asked', async () => {
  expect(await clusterInUse({ ATOLL_CLUSTER: 'docker', ATOLL_DOCKER_SOCKETS: `${hanging}, ${engine}` })).toBe(
    `containers of the engine at ${hanging}, for new GPU services`,
  );
  expect(await clusterInUse({ ATOLL_DOCKER_SOCKETS: engine }, [engine])).toBe(
    `simulated, for new GPU services; the API can set a cluster on ${engine}`,
  );
});
