import { randomUUID } from 'node:crypto';
import { request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { billingReports, type BillingReport } from '@atoll/contracts/billing';
import { subscriptions, type SubscriptionList } from '@atoll/contracts/gpuaas';
import { instances, podLogs, type PodLogPage } from '@atoll/contracts/pods';
import { Json } from '@atoll/rpc';
import { UnreadLimits } from './unread-answers.js';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';
import { teamId } from '../testing/team-fixture.js';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway();
  await gateway.app.listen(0, '127.0.0.1');
});
afterAll(() => gateway.close());

const report = `/api/team-billing/${teamId}/2026-10-01T00:00:00/2026-11-01T00:00:00/daily/utc`;
const parts = (count: number, bytes: number): Uint8Array[] => [
  Buffer.from('{"intervals":["'),
  ...Array.from({ length: count }, (_, n) => Buffer.alloc(bytes, String(n % 10))),
  Buffer.from('"]}'),
];
/** 30 MiB: more than the sockets of both sides hold. */
const large = parts(120, 256 * 1024);

interface Sent {
  status: number | undefined;
  headers: Record<string, unknown>;
  body: Buffer;
}

function ask(
  method: string,
  {
    key = gateway.services.key(),
    path = report,
    onResponse,
  }: { key?: string; path?: string; onResponse?: (incoming: IncomingMessage) => void } = {},
): Promise<Sent> {
  const { port } = gateway.app.getHttpServer().address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}` };
    const outgoing = request({ port, method, path, headers, agent: false }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('close', () => incoming.complete || reject(new Error('The answer was cut off.')));
      incoming.on('end', () =>
        resolve({ status: incoming.statusCode, headers: incoming.headers, body: Buffer.concat(chunks) }),
      );
      onResponse?.(incoming);
    });
    outgoing.on('error', reject).end();
  });
}

describe('an answer that comes in parts', () => {
  it('is sent as they are, with its length and its type', async () => {
    const sent = parts(80, 256 * 1024);
    gateway.services.answer(billingReports.team, () => new Json<BillingReport>(sent));
    const { status, headers, body } = await ask('GET');
    expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    expect(headers['content-length']).toBe(String(body.length));
    expect(body.equals(Buffer.concat(sent))).toBe(true);
  });

  it('may be one part, and a short text as ever', async () => {
    gateway.services.answer(billingReports.team, () => new Json<BillingReport>([Buffer.from('{"total_cost":"1"}')]));
    expect((await ask('GET')).body.toString()).toBe('{"total_cost":"1"}');
    gateway.services.answer(billingReports.team, () => ({ total_cost: '2' }) as BillingReport);
    expect((await ask('GET')).body.toString()).toBe('{"total_cost":"2"}');
  });

  it('is passed on of a page of logs too, without being read', async () => {
    const page = '{ "data": [], "next_cursor": null }';
    gateway.services.answer(podLogs.read, () => new Json<PodLogPage>([Buffer.from(page)]));
    const { status, headers, body } = await ask('GET', { path: '/api/logs/pods' });
    expect([status, headers['content-type'], body.toString()]).toEqual([200, 'application/json; charset=utf-8', page]);
  });

  it('has its length and no body for HEAD', async () => {
    const sent = parts(4, 256 * 1024);
    gateway.services.answer(billingReports.team, () => new Json<BillingReport>(sent));
    const { status, headers, body } = await ask('HEAD');
    expect([status, headers['content-length'], body.length]).toEqual([200, String(Buffer.concat(sent).length), 0]);
  });

  it('is passed on of a listing without limit; with limit it has the links of its page', async () => {
    const whole = [Buffer.from('{"data":[{"subscription_id": "1"}'), Buffer.from(']}')];
    const page = { data: [], pagination: { page: 1, limit: 5, total: 7 } };
    gateway.services.answer(subscriptions.list, ({ limit }) =>
      limit === undefined ? new Json<SubscriptionList>(whole) : page,
    );
    const listed = (more: string) =>
      gateway.call('GET', `/api/gpuaas/pool-subscription?team_id=${teamId}${more}`, { key: gateway.services.key() });
    const [all, first] = [await listed(''), await listed('&limit=5')];
    const json = 'application/json; charset=utf-8';
    expect([all.status, all.headers['content-type'], all.body]).toEqual([
      200,
      json,
      { data: [{ subscription_id: '1' }] },
    ]);
    expect([first.headers['content-type'], first.body]).toEqual([json, page]);
    expect(first.headers['link']).toContain('limit=5&page=2>; rel="last"');
    expect(all.headers['content-length']).toBe(String(Buffer.concat(whole).length));
  });

  it('of the instances of all teams is a page for the operator, and has its links', async () => {
    gateway.services.answer(instances.list, () => ({ data: [], pagination: { page: 1, limit: 10, total: 21 } }));
    const listed = (more: string) =>
      gateway.call('GET', `/api/instance${more}`, { key: gateway.services.key({ platform_admin: true }) });
    const [all, ofTeam, page] = [
      await listed(''),
      await listed(`?team_id=${teamId}`),
      await listed('?limit=10&page=2'),
    ];
    expect(all.body).toEqual({ data: [], pagination: { page: 1, limit: 10, total: 21 } });
    expect(all.headers['link']).toContain('</api/instance?page=2&limit=10>; rel="next"');
    expect(page.headers['link']).toContain('</api/instance?limit=10&page=3>; rel="last"');
    expect(ofTeam.headers).not.toHaveProperty('link');
  });

  it('that is not read to its end is dropped, and leaves nothing behind', async () => {
    gateway.services.answer(billingReports.team, () => new Json<BillingReport>(large));
    await expect(ask('GET', { onResponse: (incoming) => incoming.destroy() })).rejects.toThrow();
    gateway.services.answer(billingReports.team, () => new Json<BillingReport>(large.slice(0, 5)));
    gateway.app.get(UnreadLimits).ofOne = 1;
    expect((await ask('GET')).status).toBe(200);
    expect((await ask('GET')).status).toBe(200);
  });

  describe('and is not read', () => {
    const stalled: IncomingMessage[] = [];
    const stall = (key: string) =>
      new Promise<void>((resolve) => {
        const onResponse = (incoming: IncomingMessage) => {
          stalled.push(incoming.pause());
          resolve();
        };
        void ask('GET', { key, onResponse }).catch(() => undefined);
      });
    const ofTeam = (teamId: string, user_id: string = randomUUID()) =>
      gateway.services.key({ user_id, scope: 'membership', teams: [{ team_id: teamId, role: 'team_owner' }] });

    beforeEach(() => {
      Object.assign(gateway.app.get(UnreadLimits), {
        ofOne: 16 * 1024 * 1024,
        ofAll: 40 * 1024 * 1024,
        patienceMs: 60_000,
        slowMs: 60_000,
      });
      gateway.services.answer(billingReports.team, () => new Json<BillingReport>(large));
    });
    afterEach(() => {
      for (const incoming of stalled.splice(0)) incoming.destroy();
    });

    it('lets its team have no more of them, and others theirs, as long as there is memory for all', async () => {
      const [one, same, other, third] = [ofTeam('a'), ofTeam('a'), ofTeam('b'), ofTeam('c')];
      await stall(one);
      const { status, headers } = await ask('GET', { key: same });
      expect([status, Number(headers['retry-after']) > 0]).toEqual([429, true]);
      await stall(other);
      expect((await ask('GET', { key: third })).status).toBe(503);
      stalled.splice(0).forEach((incoming) => incoming.destroy());
      while ((await ask('GET', { key: third })).status !== 200) await delay(20);
      expect((await ask('GET', { key: same })).status).toBe(200);
    });

    it('counts for its user too, in whatever team', async () => {
      const user = randomUUID();
      await stall(ofTeam('a', user));
      expect((await ask('GET', { key: ofTeam('b', user) })).status).toBe(429);
      expect((await ask('GET', { key: ofTeam('b') })).status).toBe(200);
    });

    it('is cut off where it has been read for long and there is memory for no other', async () => {
      await stall(ofTeam('a'));
      await stall(ofTeam('b'));
      gateway.app.get(UnreadLimits).slowMs = 0;
      expect((await ask('GET', { key: ofTeam('c') })).status).toBe(200);
      expect((await Promise.all(stalled.map(isComplete))).filter(Boolean)).toHaveLength(1);
    });

    const isComplete = (incoming: IncomingMessage) =>
      new Promise((resolve) => incoming.resume().once('close', () => resolve(incoming.complete)));

    it('is cut off before that of somebody who has less unread in all, also where that one is larger', async () => {
      const answerWith = (parts: number) =>
        gateway.services.answer(billingReports.team, () => new Json<BillingReport>(large.slice(0, parts)));
      const many = randomUUID();
      answerWith(60);
      await stall(ofTeam('a', many));
      await stall(ofTeam('b', many));
      answerWith(80);
      await stall(ofTeam('c'));
      Object.assign(gateway.app.get(UnreadLimits), { slowMs: 0, ofAll: 30 * 1024 * 1024 });
      answerWith(1);
      expect((await ask('GET', { key: ofTeam('d') })).status).toBe(200);
      const [one, other, larger] = await Promise.all(stalled.map(isComplete));
      expect([one && other, larger]).toEqual([false, true]);
    });

    it('is not cut off where that would not be enough for another', async () => {
      await stall(ofTeam('a'));
      const now = performance.now.bind(performance);
      const clock = jest.spyOn(performance, 'now').mockImplementation(() => now() + 3_600_000);
      try {
        await stall(ofTeam('b'));
        Object.assign(gateway.app.get(UnreadLimits), { slowMs: 1_800_000, ofAll: 1 });
        expect((await ask('GET', { key: ofTeam('c') })).status).toBe(503);
      } finally {
        clock.mockRestore();
      }
      expect(await Promise.all(stalled.map(isComplete))).toEqual([true, true]);
    });

    it('counts with those of its team that were asked for at the same time', async () => {
      const key = ofTeam('e');
      let asked = 0;
      const both = Promise.withResolvers<void>();
      gateway.services.answer(billingReports.team, async () => {
        asked += 1;
        if (asked === 2) both.resolve();
        await both.promise;
        return new Json<BillingReport>(large);
      });
      const statuses: number[] = [];
      const stallBoth = [key, key].map(
        () =>
          new Promise<void>((resolve) => {
            const onResponse = (incoming: IncomingMessage) => {
              stalled.push(incoming.pause());
              statuses.push(incoming.statusCode ?? 0);
              resolve();
            };
            void ask('GET', { key, onResponse }).catch(() => undefined);
          }),
      );
      await Promise.all(stallBoth);
      expect(statuses.toSorted()).toEqual([200, 429]);
    });

    it('is cut off after a while', async () => {
      gateway.app.get(UnreadLimits).patienceMs = 200;
      const key = ofTeam('d');
      await stall(key);
      gateway.app.get(UnreadLimits).patienceMs = 60_000;
      while ((await ask('GET', { key })).status !== 200) await delay(20);
    });
  });
});
