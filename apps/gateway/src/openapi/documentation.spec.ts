import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { errorCodes } from '@atoll/errors';
import { createCompat } from '../compat/create-compat.js';
import { call, startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';

let gateway: GatewayUnderTest;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.close());

describe('the pages', () => {
  it('can be read without a key, and load nothing from elsewhere', async () => {
    const page = await gateway.call<string>('GET', '/api/docs');
    expect([page.status, page.headers['content-type']]).toEqual([200, expect.stringMatching(/^text\/html/)]);
    const sources = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source = '']) => source);
    expect(sources.length).toBeGreaterThan(2);
    for (const source of sources) {
      expect(source).not.toMatch(/^(https?:)?\/\//);
      expect((await gateway.call('GET', new URL(source, 'http://x/api/docs').pathname)).status).toBe(200);
    }
  });

  it('run no script but their own, are framed by nobody, and tell no other site where a link was followed', async () => {
    for (const url of ['/api/docs', '/api/docs/errors', '/api/docs/swagger-ui-init.js', '/api/openapi.json']) {
      const { status, headers } = await gateway.call<string>('GET', url);
      expect([url, status, headers['x-frame-options'], headers['referrer-policy']]).toEqual([
        url,
        200,
        'DENY',
        'no-referrer',
      ]);
      const policy = new Map(
        headers['content-security-policy']?.split('; ').map((rule) => rule.split(/ (.*)/) as [string, string]),
      );
      expect(policy.get('default-src')).toBe("'none'");
      expect(policy.get('script-src')).toBe("'self'");
      expect(policy.get('frame-ancestors')).toBe("'none'");
    }
    const { body } = await gateway.call<string>('GET', '/api/docs');
    // What the policy would block, the page does not need.
    expect(body).not.toMatch(/<script(?![^>]*\ssrc=)[^>]*>|\son\w+=|javascript:/i);
    expect(body.match(/<script/g)?.length).toBeGreaterThan(2);
    expect((await gateway.call('GET', '/api/team')).headers).not.toHaveProperty('content-security-policy');
  });

  it('are small, as they load the document from its own address', async () => {
    const { body } = await gateway.call<string>('GET', '/api/docs/swagger-ui-init.js');
    expect(body).toContain('"swaggerUrl": "/api/openapi.json"');
    expect(body.length).toBeLessThan(10_000);
  });

  it('are where the root leads, until there is a page there', async () => {
    const { status, headers } = await gateway.call('GET', '/');
    expect([status, headers.location]).toEqual([302, '/api/docs']);
    expect((await gateway.call('GET', '/elsewhere')).status).toBe(404);
  });

  it('explain every code at its anchor', async () => {
    const { status, body } = await gateway.call<string>('GET', '/api/docs/errors');
    expect(status).toBe(200);
    for (const code of errorCodes) expect(body).toContain(`<section id="${code}">`);
  });
});

describe('the document', () => {
  let compat: NestFastifyApplication;
  beforeAll(async () => {
    compat = await createCompat(gateway.app);
  });
  afterAll(() => compat.close());

  const document = (app: NestFastifyApplication, method = 'GET', headers: Record<string, string> = {}) =>
    call<object | string>(app, method, '/api/openapi.json', { headers });

  it('is made once, and not again for each who reads it', async () => {
    for (const app of [gateway.app, compat]) {
      const first = await document(app);
      const written = jest.spyOn(JSON, 'stringify');
      const second = await document(app);
      const documents = written.mock.calls.filter(([value]) => typeof value === 'object' && 'openapi' in (value ?? {}));
      written.mockRestore();
      expect([second.status, second.headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
      expect([second.body, documents]).toEqual([first.body, []]);
    }
  });

  it('is not sent again to who has it', async () => {
    for (const app of [gateway.app, compat]) {
      const { headers, body } = await document(app);
      const { etag = '', 'content-length': length } = headers;
      expect(etag).toMatch(/^"[\w-]{43}"$/);
      expect(length).toBe(String(Buffer.byteLength(JSON.stringify(body))));
      for (const known of [etag, `W/${etag}`, `"another", ${etag}`]) {
        const again = await document(app, 'GET', { 'if-none-match': known });
        expect([again.status, again.headers.etag, again.body]).toEqual([304, etag, '']);
      }
      expect((await document(app, 'GET', { 'if-none-match': '"another"' })).status).toBe(200);
      const head = await document(app, 'HEAD', { 'if-none-match': etag });
      expect([head.status, head.headers['content-length'], head.headers.etag]).toEqual([200, length, etag]);
    }
  });
});
