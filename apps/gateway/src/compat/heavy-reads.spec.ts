import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { Operation } from '@atoll/contracts';
import { connections, subscriptions } from '@atoll/contracts/gpuaas';
import { instances, podBatches } from '@atoll/contracts/pods';
import { imagePolicies } from '@atoll/contracts/teams';
import { AppError } from '@atoll/errors';
import { teamId } from '../testing/team-fixture.js';
import { startCompat, type CompatUnderTest } from './testing/compat-fixture.js';

let compat: CompatUnderTest;
let key: string;
beforeAll(async () => {
  compat = await startCompat({ deadlineMs: 5_000 });
  key = compat.gateway.services.key();
});
afterAll(() => compat.close());

it.each<[string, Operation]>([
  [`/gpuaas/pool-subscription?team_id=${teamId}`, subscriptions.list],
  [`/instances/unified?team_id=${teamId}`, podBatches.instances],
  [`/gpuaas/compatible-instances/${teamId}`, instances.list],
])('%s has 20 seconds, as what it reads has on the main API', async (url, operation) => {
  const { services } = compat.gateway;
  services.answer(imagePolicies.teamImages, () => ({ data: [] }));
  services.answer(connections.compatibleInstances, () => ({ data: [] }));
  services.answer(operation, () => {
    throw new AppError('conflict', 'This is all that is asked.');
  });
  const beganAtMs = Date.now();
  expect((await compat.call('GET', `/api${url}`, { key })).status).toBe(409);
  expect(services.contextOf(operation).deadlineAtMs).toBeGreaterThan(beganAtMs + 10_000);
});
