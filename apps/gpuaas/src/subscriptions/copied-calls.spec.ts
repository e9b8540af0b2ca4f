import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { handleOnce } from '@atoll/database';
import { contextOf } from '@atoll/testing';
import { GpuaasFixture } from '../gpuaas-fixture.js';
import { SubscriptionAccepting } from './subscription-accepting.js';

let fixture: GpuaasFixture;
beforeAll(async () => {
  fixture = await GpuaasFixture.start();
});
afterAll(() => fixture.stop());

it('subscribing side by side, each call is remembered: a copy of any makes no second subscription, and takes no other call with it', async () => {
  const { team_id, member } = await fixture.team();
  const { pool_id } = await fixture.pool({ mechanism: 'mps', replicas: 40, sharing_mode: 'Spatial' });
  const nonces = Array.from({ length: 5 }, () => randomBytes(32).toString('base64url'));
  const deadlineAtMs = Date.now() + 60_000;
  const subscribe = async (number: number) => {
    const asked = { team_id, pool_id, vgpus: 1, name: `call ${number}` };
    const answer = await handleOnce({ nonce: nonces[number] ?? '', deadlineAtMs }, () =>
      fixture.get(SubscriptionAccepting).subscribe(asked, { ...contextOf(member), deadlineAtMs }),
    );
    return answer?.name;
  };
  expect(await Promise.all([0, 1, 2].map(subscribe))).toEqual(['call 0', 'call 1', 'call 2']);
  expect(await Promise.all([1, 3, 2, 4].map(subscribe))).toEqual([undefined, 'call 3', undefined, 'call 4']);
  const made = await fixture.query<{ name: string }>('SELECT name FROM subscription WHERE pool_id = $1 ORDER BY name', [
    pool_id,
  ]);
  expect(made.map(({ name }) => name)).toEqual([0, 1, 2, 3, 4].map((number) => `call ${number}`));
});
