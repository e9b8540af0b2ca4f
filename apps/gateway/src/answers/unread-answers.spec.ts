import { once } from 'node:events';
import { connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { billingReports, type BillingReport } from '@atoll/contracts/billing';
import { teams } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { Json } from '@atoll/rpc';
import { startListening, type Listening } from '../compat/testing/listening-fixture.js';
import { aTeam, teamId } from '../testing/team-fixture.js';
import { UnreadLimits } from './unread-answers.js';

let { gateway, compat, close } = {} as Listening;
beforeAll(async () => {
  ({ gateway, compat, close } = await startListening());
});
afterAll(() => close());

/** More than the sockets of both sides hold. */
const bytes = 12 * 1024 * 1024;
const long = 'x'.repeat(bytes);
const report = `/api/team-billing/${teamId}/2026-10-01T00:00:00/2026-11-01T00:00:00/daily/utc`;
const team = `/api/team/${teamId}`;

const stalled: Socket[] = [];
let isOver: boolean;
afterEach(() => {
  isOver = true;
  for (const socket of stalled.splice(0)) socket.destroy();
});
let limits: UnreadLimits;
beforeEach(() => {
  isOver = false;
  limits = gateway.app.get(UnreadLimits);
  Object.assign(limits, { ofOne: 1, ofAll: 1024 * 1024 * 1024, patienceMs: 60_000 });
  gateway.services.answer(teams.get, () => aTeam({ description: long }));
});

/** Asks for all of these on one connection, one behind the other, and reads nothing. Returns the server's side. */
async function stall(app: NestFastifyApplication, paths: readonly string[], key?: string): Promise<Socket> {
  const server = app.getHttpServer() as Server;
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, 'connection');
  const socket = connect(port, '127.0.0.1').pause();
  stalled.push(socket);
  const credential = key === undefined ? '' : `Authorization: Bearer ${key}\r\n`;
  socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: x\r\n${credential}\r\n`).join(''));
  const [served] = (await accepted) as [Socket];
  return served;
}

/** Until a long answer of the team, which may leave none unread, has this status. */
async function untilStatus(status: number, key: string): Promise<void> {
  while (!isOver && (await gateway.call('GET', team, { key })).status !== status) await delay(20);
}

describe('an answer that nobody reads', () => {
  it.each<[string, () => NestFastifyApplication, string]>([
    ['made of an object', () => gateway.app, team],
    ['passed on as a text', () => gateway.app, report],
    ['passed on as one part', () => gateway.app, report],
    ['of the compatibility mount', () => compat, team],
  ])(
    'counts for its team while its connection lasts, and is cut off after a while: one %s',
    async (form, app, path) => {
      const bill = { total_cost: long } as BillingReport;
      const part = new Json<BillingReport>([Buffer.from(JSON.stringify(bill))]);
      gateway.services.answer(billingReports.team, () => (form === 'passed on as one part' ? part : bill));
      const key = gateway.services.key();
      const abortedLines = (): number => gateway.logged().filter(({ aborted }) => aborted).length;
      const abortedBefore = abortedLines();
      await stall(app(), [path], key);
      await untilStatus(429, key);
      stalled[0]?.destroy();
      await untilStatus(200, key);

      limits.patienceMs = 200;
      const served = await stall(app(), [path], key);
      await once(served, 'close');
      await untilStatus(200, key);
      expect(abortedLines() - abortedBefore).toBe(2);
    },
  );

  const script = '/api/docs/swagger-ui-bundle.js';
  it.each([['/api/openapi.json'], [script]])('is cut off without a caller too: %s', async (path) => {
    limits.patienceMs = 200;
    for (const app of [gateway.app, compat]) {
      // As many as may wait on one connection, 14 MB at least.
      const served = await stall(
        app,
        Array.from({ length: 16 }, (_, at) => (at < 8 ? path : script)),
      );
      await once(served, 'close');
    }
  });

  it('counts for nobody where its client has hung up before it came', async () => {
    const key = gateway.services.key();
    const [asked, left] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    gateway.services.answer(teams.get, async () => {
      asked.resolve();
      await left.promise;
      return aTeam({ description: long });
    });
    const served = await stall(gateway.app, [team], key);
    await asked.promise;
    const closed = once(served, 'close');
    stalled[0]?.destroy();
    await closed;
    left.resolve();
    // Behind it: what it has left would refuse these.
    for (let count = 0; count < 3; count += 1) {
      expect((await gateway.call('GET', team, { key })).status).toBe(200);
      await delay(20);
    }
  });

  it('is forgotten with its connection where it waits behind another', async () => {
    const key = gateway.services.key();
    Object.assign(limits, { ofOne: 2 * bytes, patienceMs: 200 });
    const before = gateway.services.callsOf(teams.get).length;
    const served = await stall(gateway.app, [team, team], key);
    await once(served, 'close');
    expect(gateway.services.callsOf(teams.get)).toHaveLength(before + 2);
    limits.ofOne = 1;
    await untilStatus(200, key);
  });

  it('is sent in its turn, however long the one before it was waited for', async () => {
    const key = gateway.services.key();
    const isWaitedFor = Promise.withResolvers<void>();
    gateway.services.answer(billingReports.team, () =>
      isWaitedFor.promise.then(() => ({ total_cost: '1' }) as BillingReport),
    );
    limits.patienceMs = 500;
    await stall(gateway.app, [report, team], key);
    await delay(1.5 * limits.patienceMs);
    isWaitedFor.resolve();
    let read = 0;
    for await (const chunk of stalled[0] ?? []) {
      read += (chunk as Buffer).length;
      if (read > bytes) break;
    }
    expect(read).toBeGreaterThan(bytes);
  });

  it('counts for its user, or for who holds the key, in whatever teams, and not for other members of its other teams', async () => {
    const ids = [newId(), newId(), newId()] as const;
    const keyTo = (id: string, of: object) =>
      gateway.services.key({
        user_id: newId(),
        scope: 'membership',
        teams: [{ team_id: id, role: 'viewer', lacks_second_factor: false }],
        ...of,
      });
    for (const one of [{ user_id: newId() }, { held_by: newId() }]) {
      const [key, other] = [keyTo(ids[0], one), keyTo(ids[1], one)];
      await stall(gateway.app, [team], key);
      await untilStatus(429, key);
      expect((await gateway.call('GET', team, { key: other })).status).toBe(429);
      expect((await gateway.call('GET', team, { key: keyTo(ids[1], {}) })).status).toBe(200);
      stalled[0]?.destroy();
      stalled.splice(0);
      await untilStatus(200, other);
    }
    // What was read, or given up, counts for nobody any more.
    limits.ofAll = 1;
    expect((await gateway.call('GET', team, { key: keyTo(ids[2], {}) })).status).toBe(200);
  });

  it('does not refuse a call that has changed something, however long its own answer is', async () => {
    const key = gateway.services.key();
    await stall(gateway.app, [team], key);
    await untilStatus(429, key);
    gateway.services.answer(teams.create, () => aTeam({ description: long }));
    const { status, body } = await gateway.call<object>('POST', '/api/team', { key, body: { name: 'x' } });
    expect([status, body]).toEqual([201, aTeam({ description: long })]);
    const { headers } = await gateway.call('HEAD', team, { key });
    expect(headers['content-length']).toBe(String(JSON.stringify(body).length));
  });
});
