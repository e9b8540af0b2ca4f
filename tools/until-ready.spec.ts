import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { untilReady } from './until-ready.js';

let server: Server;
let url: string;
/** The next answer, or that of all after it. */
let answers: ((response: ServerResponse) => void)[];

const ready = (response: ServerResponse): unknown => response.writeHead(200).end('{"status":"ready","reasons":[]}');
const unready = (response: ServerResponse): unknown =>
  response.writeHead(503).end('{"status":"not_ready","reasons":[{"name":"nats","reason":"NATS is not connected"}]}');

beforeEach(async () => {
  server = createServer((_, response) => (answers.length > 1 ? answers.shift() : answers[0])?.(response)).listen(
    0,
    '127.0.0.1',
  );
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

it('says what a process waits for, until it is ready', async () => {
  answers = [unready, unready, ready];
  const told: string[] = [];
  const options = { signal: new AbortController().signal, tell: (line: string) => told.push(line), tellEveryMs: 0 };
  await untilReady(new Map([['teams', url]]), options);
  expect(told).toEqual(Array.from({ length: 2 }, () => 'Still waiting for teams: nats: NATS is not connected'));
});

it('asks a process again that took a question and never answered it', async () => {
  answers = [() => undefined, ready];
  const told: string[] = [];
  const options = { signal: new AbortController().signal, tell: (line: string) => told.push(line), tellEveryMs: 0 };
  await untilReady(new Map([['teams', url]]), options);
  expect(told).toEqual(['Still waiting for teams: The operation was aborted due to timeout']);
});

it('says with which status a program answers that gives no reasons', async () => {
  answers = [(response) => response.writeHead(404).end('{}'), ready];
  const told: string[] = [];
  const options = { signal: new AbortController().signal, tell: (line: string) => told.push(line), tellEveryMs: 0 };
  await untilReady(new Map([['teams', url]]), options);
  expect(told).toEqual(['Still waiting for teams: its answer has status 404']);
});

it('says that nobody listens, and ends when it is told to', async () => {
  server.close();
  await once(server, 'close');
  const aborting = new AbortController();
  const told: string[] = [];
  const tell = (line: string): void => {
    told.push(line);
    aborting.abort();
  };
  await expect(
    untilReady(new Map([['gateway', url]]), { signal: aborting.signal, tell, tellEveryMs: 0 }),
  ).rejects.toThrow(/abort/);
  expect(told).toEqual([expect.stringContaining('Still waiting for gateway: connect ECONNREFUSED')]);
});

it('asks on ports that browsers and `fetch` refuse', async () => {
  server.close();
  await once(server, 'close');
  const listening = async (port: number): Promise<boolean> => {
    server.listen(port, '127.0.0.1');
    return once(server, 'listening').then(
      () => true,
      () => false,
    );
  };
  // From the list of WHATWG's Fetch standard, "bad port"; other programs may have some of them.
  let port = 0;
  for (const bad of [10_080, 6000, 6697, 6669]) if (port === 0 && (await listening(bad))) port = bad;
  answers = [ready];
  const aborting = new AbortController();
  await untilReady(new Map([['teams', `http://127.0.0.1:${port}`]]), {
    signal: aborting.signal,
    tell: (line) => aborting.abort(new Error(line)),
    tellEveryMs: 0,
  });
});
