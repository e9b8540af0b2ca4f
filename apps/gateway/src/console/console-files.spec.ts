import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';

let folder: string;
let gateway: GatewayUnderTest;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-console-'));
  for (const name of ['assets', '.vite']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'index.html'), '<!doctype html><title>Atoll</title>');
  writeFileSync(join(folder, 'top-level-paths.json'), '["/", "/sign-in", "/teams"]');
  writeFileSync(join(folder, 'assets/index-abc.js'), 'start()');
  writeFileSync(join(folder, 'assets/index-abc.js.br'), brotliCompressSync('start()'));
  writeFileSync(join(folder, '.vite/manifest.json'), '{}');
  gateway = await startGateway({ consoleFolder: folder });
});
afterAll(async () => {
  await gateway.close();
  rmSync(folder, { recursive: true });
});

describe('the console', () => {
  it.each(['/', '/sign-in', '/teams', '/teams/0199f3c2/billing?interval=daily'])(
    'is served at %s, and asked for again each time',
    async (path) => {
      const { status, headers, body } = await gateway.call<string>('GET', path);
      expect({ status, body }).toEqual({ status: 200, body: '<!doctype html><title>Atoll</title>' });
      expect(headers['content-type']).toBe('text/html; charset=utf-8');
      expect(headers['cache-control']).toBe('no-cache');
    },
  );

  it('may run its own files alone, and turn no text into markup', async () => {
    const { headers } = await gateway.call<string>('GET', '/');
    const policy = headers['content-security-policy']?.split('; ');
    expect(policy).toEqual(
      expect.arrayContaining([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "trusted-types 'none'",
      ]),
    );
    expect(String(policy)).not.toContain('unsafe');
  });

  it('has files that are kept for a year, compressed where the browser takes that', async () => {
    const plain = await gateway.call<string>('GET', '/assets/index-abc.js');
    expect(plain).toMatchObject({ status: 200, body: 'start()' });
    expect(plain.headers['cache-control']).toBe('public, max-age=31536000, immutable');
    const compressed = await gateway.app.inject({
      url: '/assets/index-abc.js',
      headers: { 'accept-encoding': 'gzip, br' },
    });
    expect(compressed.headers['content-encoding']).toBe('br');
    expect(brotliDecompressSync(compressed.rawPayload).toString()).toBe('start()');
    expect(compressed.headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      vary: 'accept-encoding',
    });
  });

  it.each(['gzip', 'br;q=0', 'br;q=0.000, identity', '', 'brotli'])(
    'sends a file as it is to a browser that takes %j',
    async (accepted) => {
      const plain = await gateway.app.inject({ url: '/assets/index-abc.js', headers: { 'accept-encoding': accepted } });
      expect([plain.statusCode, plain.headers['content-encoding'], plain.payload]).toEqual([200, undefined, 'start()']);
    },
  );

  it('keeps its files while another build replaces them in its folder', async () => {
    const own = mkdtempSync(join(tmpdir(), 'atoll-console-'));
    cpSync(folder, own, { recursive: true });
    const running = await startGateway({ consoleFolder: own });
    rmSync(join(own, 'assets'), { recursive: true });
    for (const encoding of ['br', 'identity']) {
      const answer = await running.app.inject({
        url: '/assets/index-abc.js',
        headers: { 'accept-encoding': encoding },
      });
      expect(answer.statusCode).toBe(200);
    }
    await running.close();
    rmSync(own, { recursive: true });
  });

  it.each([
    '/assets/other.js',
    '/assets/index-abc.js.br',
    '/assets/..%2findex.html',
    '/.vite/manifest.json',
    '/index.html',
    '/teamsx',
    '/nothing',
  ])('has nothing at %s', async (path) => {
    const { status, headers, body } = await gateway.call('GET', path);
    expect({ status, code: body.code }).toEqual({ status: 404, code: 'not_found' });
    expect(headers['cache-control']).toBe('no-store');
  });

  it.each(['/nothing', '/teamsx/1', '/index.html', '/apis?page=1'])(
    'tells a person at %s that there is no such page',
    async (path) => {
      const headers = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
      const answer = await gateway.call<string>('GET', path, { headers });
      expect([answer.status, answer.body]).toEqual([404, '<!doctype html><title>Atoll</title>']);
      expect(answer.headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' });
      expect(answer.headers['content-security-policy']).toContain("default-src 'none'");
      for (const accept of ['application/json', '*/*']) {
        expect((await gateway.call('GET', path, { headers: { accept } })).body.code).toBe('not_found');
      }
      expect((await gateway.call('POST', path, { headers })).body.code).toBe('not_found');
    },
  );

  it.each(['/api/nothing', '/assets/other.js'])(
    'sends a browser a problem for %s, which is no address of a page',
    async (path) => {
      const { headers } = await gateway.call('GET', path, {
        key: gateway.services.key(),
        headers: { accept: 'text/html' },
      });
      expect(headers['content-type']).toMatch(/^application\/problem\+json/);
    },
  );

  it('takes nothing that is sent to its addresses, and hides no address of the API', async () => {
    expect((await gateway.call('POST', '/sign-in', { body: {} })).status).toBe(405);
    expect((await gateway.call('GET', '/api/nothing')).status).toBe(401);
    expect((await gateway.call('GET', '/livez')).status).toBe(200);
  });
});

it('without a built console, / leads to the documentation', async () => {
  const bare = await startGateway({ consoleFolder: join(folder, 'nothing') });
  const { status, headers } = await bare.call('GET', '/');
  expect({ status, to: headers.location }).toEqual({ status: 302, to: '/api/docs' });
  await bare.close();
});
