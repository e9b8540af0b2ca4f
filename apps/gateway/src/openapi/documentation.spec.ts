import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { errorCodes } from '@atoll/errors';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';

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
