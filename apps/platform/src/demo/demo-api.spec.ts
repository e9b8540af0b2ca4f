import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from '@jest/globals';
import { DemoApi } from './demo-api.js';

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/**
 * A platform that answers with these statuses, one after the other, and keeps the paths and headers that it was sent.
 */
async function answering(
  ...statuses: readonly number[]
): Promise<{ api: DemoApi; url: string; sent: IncomingHttpHeaders[]; paths: (string | undefined)[] }> {
  const sent: IncomingHttpHeaders[] = [];
  const paths: (string | undefined)[] = [];
  server = createServer(({ headers, url: path }, response) => {
    const status = statuses[sent.length] ?? 200;
    sent.push(headers);
    paths.push(path);
    response.writeHead(status, { 'retry-after': '0' }).end(JSON.stringify({ status }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return { api: new DemoApi({ url, adminKey: 'key' }), url, sent, paths };
}

it('sends a call again that the platform could not take at the moment, as the same call', async () => {
  const { api, sent } = await answering(503, 429);
  expect(await api.post('/team', { name: 'Lab' })).toEqual({ status: 200 });
  expect(sent).toHaveLength(3);
  expect(new Set(sent.map((headers) => headers['idempotency-key'])).size).toBe(1);
  expect(sent[0]?.['idempotency-key']).toMatch(/^[0-9a-f-]{36}$/);
});

it('says what the platform refused, and sends that once', async () => {
  const { api, sent } = await answering(422);
  await expect(api.post('/team', { name: 'Lab' })).rejects.toThrow('POST /team answered 422');
  expect(sent).toHaveLength(1);
});

it.each(['', '/', '//'])('calls a platform whose URL ends with "%s" at its own paths', async (end) => {
  const { url, paths } = await answering();
  await new DemoApi({ url: `${url}${end}`, adminKey: 'key' }).get('/region');
  expect(paths).toEqual(['/api/region']);
});
