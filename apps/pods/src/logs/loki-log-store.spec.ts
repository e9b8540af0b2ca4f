import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Transactions } from '@atoll/database';
import { Logger } from '@nestjs/common';
import { afterEach, expect, it, jest } from '@jest/globals';
import { nsOfMs, type SourceLines } from './log-line.js';
import type { LogQuery } from './log-store.js';
import { LokiLogStore } from './loki-log-store.js';

const nothing = JSON.stringify({ data: { result: [] } });
const query: LogQuery = {
  ...{ teamId: 'team', scopes: [{ no: 1, gpuaasId: '1' }], sources: null },
  ...{
    sinceNs: 0n,
    untilNs: nsOfMs(Date.now()),
    order: 'desc',
    after: null,
    search: null,
    searchMs: 60_000,
    limit: 10,
  },
};

const group: SourceLines = {
  source: { no: 1, scopeNo: 1, teamId: 'team', gpuaasId: '1', podName: 'pod', isPlatform: false },
  lines: [{ atNs: nsOfMs(Date.now()), sourceNo: 1, stream: 'stdout', message: 'a line' }],
};

const transactions = { run: (work: (manager: undefined) => unknown) => work(undefined) } as unknown as Transactions;

let stop: (() => void)[] = [];
afterEach(() => {
  for (const each of stop) each();
  stop = [];
  jest.restoreAllMocks();
});

/** A store whose Loki answers each question, of which this is the number, as `answer` does. */
async function storeOn(
  answer: (response: ServerResponse, number: number) => unknown,
  readMs: number,
): Promise<LokiLogStore> {
  let questions = 0;
  const server = createServer((_, response) => void answer(response, (questions += 1))).listen(0, '127.0.0.1');
  stop.push(() => server.close().closeAllConnections());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return new LokiLogStore(transactions, { url, retentionDays: 7, readMs });
}

it('all questions of a read are answered within its time, or the store is unavailable', async () => {
  const readMs = 2_000;
  const slow = await storeOn((response) => delay((readMs * 3) / 5).then(() => response.end(nothing)), readMs);
  await expect(slow.read(query)).rejects.toMatchObject({ code: 'unavailable' });
});

it('an answer that stops in the midst is none', async () => {
  const store = await storeOn((response) => response.write(nothing.slice(0, 10)), 1_000);
  await expect(store.read(query)).rejects.toMatchObject({ code: 'unavailable' });
});

it.each(['<html>Log in</html>', '{}', 'null'])('the answer `%s` is none', async (answer) => {
  const store = await storeOn((response) => response.end(answer), 1_000);
  await expect(store.read(query)).rejects.toMatchObject({ code: 'unavailable' });
});

it('a search that Loki stops answering says how far it got, a read that is no search is unavailable', async () => {
  const readMs = 500;
  let time = new AbortController();
  const limits = jest.spyOn(AbortSignal, 'timeout').mockImplementation(() => (time = new AbortController()).signal);
  /** Answers the first question alone; the time of the read passes while the second one waits. */
  const hangingAfterOne = (response: ServerResponse, number: number) =>
    number === 1 ? response.end(nothing) : time.abort();
  await expect((await storeOn(hangingAfterOne, readMs)).read(query)).rejects.toMatchObject({ code: 'unavailable' });
  const page = await (await storeOn(hangingAfterOne, readMs)).read({ ...query, search: 'x' });
  expect(page).toEqual({ lines: [], readTo: { atNs: query.untilNs - nsOfMs(3_600_000), sourceNo: 0 } });
  expect(limits.mock.calls).toEqual([[readMs], [readMs]]);
});

it.each([
  { from: 'a web server', status: 200, type: 'text/html', answer: '<html>Welcome</html>' },
  { from: 'a server of something else', status: 200, type: 'text/plain', answer: '' },
  { from: 'a proxy', status: 400, type: 'text/html', answer: '<html>Plain HTTP was sent to an HTTPS port</html>' },
  { from: 'a server that expects TLS', status: 400, type: undefined, answer: 'Client sent an HTTP request' },
])('lines that $from took or refused ($status) are not stored and not lost: they come again', async (other) => {
  const store = await storeOn((response) => {
    response.writeHead(other.status, other.type === undefined ? {} : { 'Content-Type': other.type }).end(other.answer);
  }, 1_000);
  const save = jest.fn(() => Promise.resolve(new Set<number>()));
  await expect(store.append([group], save)).rejects.toMatchObject({ code: 'unavailable' });
  expect(save).not.toHaveBeenCalled();
});

it('the log says that it was Loki that did not answer, and why', async () => {
  const store = await storeOn((response) => response.destroy(), 1_000);
  const pushed = store.append([group], () => Promise.resolve(new Set()));
  await expect(pushed).rejects.toHaveProperty('cause.message', 'Loki did not answer: other side closed');
});

it.each([
  [400, 'timestamp too old'],
  [260, 'ingestion blocked for the tenant'],
])('lines that Loki refuses (%i) are lost, which is said once a minute for each team', async (status, reason) => {
  const warned = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
  const refusing = await storeOn((response) => {
    response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8' }).end(reason);
  }, 1_000);
  const other = { ...group, source: { ...group.source, no: 2, teamId: 'other' } };
  const save = jest.fn((_: unknown, stored: readonly SourceLines[]) =>
    Promise.resolve(new Set(stored.map(({ source }) => source.no))),
  );
  for (let push = 0; push < 3; push += 1) expect(await refusing.append([group, other], save)).toEqual(new Map());
  expect(save.mock.calls.map(([, stored]) => stored.length)).toEqual([2, 2, 2]);
  expect(warned.mock.calls.map(([line]) => line as unknown)).toEqual(
    ['team', 'other'].map((team) => `Loki refused lines of the team ${team}; they are lost: ${reason}`),
  );
});

it('of a team, one request at a time waits for a Loki that answers nobody; others fail at once', async () => {
  let isAway = true;
  const asked = jest.fn();
  const store = await storeOn((response) => {
    asked();
    if (!isAway) response.end(nothing);
  }, 60_000);
  const times: AbortController[] = [];
  jest.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
    const time = new AbortController();
    times.push(time);
    return time.signal;
  });
  const reads = (teamId: string, count: number) =>
    Array.from({ length: count }, () => store.readOfTeam(teamId, [query, query]));
  const endAll = () => times.splice(0).forEach((time) => time.abort());
  const areAsked = async (count: number) => {
    while (asked.mock.calls.length < count) await delay(5);
  };

  const first = Promise.allSettled(reads('team', 3));
  await areAsked(6);
  endAll();
  expect((await first).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);

  const next = Promise.allSettled([...reads('team', 3), ...reads('other', 1)]);
  await areAsked(10);
  expect(times).toHaveLength(4);
  endAll();
  for (const each of await next) expect(each).toMatchObject({ status: 'rejected', reason: { code: 'unavailable' } });
  expect(asked).toHaveBeenCalledTimes(10);

  isAway = false;
  await store.read(query);
  await Promise.all(reads('team', 3));
});
