import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { errorCodes } from '@atoll/errors';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';

type Operation = NonNullable<OpenAPIObject['paths'][string]['get']>;

let gateway: GatewayUnderTest;
let document: OpenAPIObject;
let routes: string[];
beforeAll(async () => {
  gateway = await startGateway();
  document = (await gateway.call<OpenAPIObject>('GET', '/api/openapi.json')).body;
  const table = gateway.app.getHttpAdapter().getInstance().printRoutes({ commonPrefix: false });
  routes = routesIn(table).filter((route) => !/\/api\/(docs|openapi)|\/(livez|readyz|metrics|)$/.test(route));
});
afterAll(() => gateway.close());

/** `get /api/team/{team_id}` for each line of Fastify's own table of routes. */
function routesIn(table: string): string[] {
  const stack: string[] = [];
  return table.split('\n').flatMap((line) => {
    const [, indent = '', rest = ''] = /^([│ ]*)[├└]── (.*)$/.exec(line) ?? [];
    if (rest === '') return [];
    const [, part = '', methods = ''] = /^(\S*)(?: \(([^)]*)\))?/.exec(rest) ?? [];
    const depth = indent.length / 4;
    stack.splice(depth, Infinity, part);
    const path = stack.join('').replace(/:([a-z_]+)/g, '{$1}');
    return methods
      .split(', ')
      .filter((method) => method && method !== 'HEAD')
      .map((method) => `${method.toLowerCase()} ${path}`);
  });
}

/** What the gateway serves, without what it has removed. */
const operations = (): [string, Operation][] => everyOperation().filter(([, { deprecated }]) => !deprecated);

function everyOperation(): [string, Operation][] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): [string, Operation] => [`${method} ${path}`, operation as Operation]),
  );
}

/** The names of the schemas that something refers to, directly or by others. */
function schemasOf(value: unknown, found = new Set<string>()): Set<string> {
  for (const [path, reference] of walk(value)) {
    const name = path.endsWith('/$ref') ? /^#\/components\/schemas\/(.*)$/.exec(String(reference))?.[1] : undefined;
    if (name === undefined || found.has(name)) continue;
    found.add(name);
    schemasOf(document.components?.schemas?.[name], found);
  }
  return found;
}

/** A response of an operation, looked up where it is a reference. */
function responseOf(operation: Operation, status: string): { headers?: object } {
  const response = operation.responses[status] as { $ref?: string; headers?: object };
  if (response.$ref === undefined) return response;
  return document.components?.responses?.[response.$ref.replace('#/components/responses/', '')] as { headers?: object };
}

/** Every value of the document with the way to it. */
function* walk(value: unknown, path = '#'): Generator<[string, unknown]> {
  yield [path, value];
  if (typeof value !== 'object' || value === null) return;
  for (const [name, child] of Object.entries(value)) yield* walk(child, `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
}

describe('the OpenAPI document', () => {
  it('is OpenAPI 3.1, served as JSON to anybody', async () => {
    const { status, headers } = await gateway.call('GET', '/api/openapi.json');
    expect([status, headers['content-type']]).toEqual([200, expect.stringMatching(/^application\/json/)]);
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: 'Atoll', version: '1' });
  });

  it('has every route of the gateway and none besides', () => {
    expect(routes.length).toBeGreaterThan(60);
    expect(
      operations()
        .map(([name]) => name)
        .sort(),
    ).toEqual([...routes].sort());
  });

  it('names each operation once, with what it does, its tag, its answer and its problems', () => {
    const ids = everyOperation().map(([, { operationId }]) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [name, operation] of operations()) {
      expect([name, operation.summary]).toEqual([name, expect.stringMatching(/\.$/)]);
      expect(document.tags?.map((tag) => tag.name)).toContain(operation.tags?.[0]);
      const statuses = Object.keys(operation.responses);
      const successes = statuses.filter((status) => status.startsWith('2'));
      // What may take longer than its answer says so by 202.
      expect(successes.length === 1 || successes.join() === '202,204').toBe(true);
      expect(statuses).toEqual(expect.arrayContaining(['400', '401', '403', '404', '413', '414', '415', '429', '500', '503', '504']));
    }
  });

  it('declares each parameter of a path, a body wherever there is one, and both ways to authenticate', () => {
    for (const [name, { parameters = [] }] of everyOperation()) {
      const declared = parameters.flatMap((parameter) => ('in' in parameter && parameter.in === 'path' ? [parameter.name] : []));
      expect([name, declared.sort()]).toEqual([name, [...name.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter).sort()]);
    }
    for (const [name, { requestBody }] of operations()) {
      if (name.startsWith('put')) expect([name, requestBody]).toEqual([name, expect.objectContaining({ required: true })]);
    }
    expect(document.paths['/api/team']?.post?.requestBody).toMatchObject({ required: true });
    expect(document.paths['/api/user/api-key']?.post?.requestBody).toMatchObject({ required: false });
    expect(document.security).toEqual([{ bearer: [] }, { api_key: [] }]);
    expect(document.components?.securitySchemes).toEqual({
      bearer: { type: 'http', scheme: 'bearer', description: 'An API key.' },
      api_key: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key.' },
    });
  });

  it('refuses unknown fields of what is sent, at any depth, and not of what is answered', () => {
    const sent = schemasOf(operations().map(([, { requestBody }]) => requestBody));
    const answered = schemasOf([operations().map(([, { responses }]) => responses), document.components?.responses]);
    expect([...sent]).toEqual(
      expect.arrayContaining(['CreateTeam', 'NewMember', 'UpdateTeamBody', 'NewImageObject', 'KeyTerms', 'CreatePool', 'NodeGpus']),
    );
    expect([...answered]).toEqual(expect.arrayContaining(['Team', 'TeamMember', 'Pool', 'GpuTenant', 'Problem']));
    for (const name of sent) expect([name, document.components?.schemas?.[name]]).toMatchObject([name, { additionalProperties: false }]);
    for (const name of answered) {
      expect([name, document.components?.schemas?.[name]]).not.toMatchObject([name, { additionalProperties: false }]);
    }
  });

  it('asks for one field at least of a change of which none is required', () => {
    const schemas = document.components?.schemas ?? {};
    for (const name of ['UpdateTeamBody', 'UpdateProfile', 'UpdateImagePolicyBody'])
      expect(schemas[name]).toMatchObject({ minProperties: 1 });
    for (const name of ['ChangeRoleBody', 'KeyTerms']) expect(schemas[name]).not.toHaveProperty('minProperties');
  });

  it('says where capacity may be refused, beside what else has that status', () => {
    const refusing = everyOperation().filter(([, { responses }]) => JSON.stringify(responses['422'] ?? {}).match(/capacity/));
    expect(refusing.map(([name]) => name).sort()).toEqual([
      'post /api/gpuaas/pool/subscribe',
      'post /api/gpuaas/workload',
      'put /api/gpuaas/pool-subscription/{subscription_id}',
    ]);
    const { post } = document.paths['/api/gpuaas/pool/subscribe'] ?? {};
    expect(post?.responses['422']).toMatchObject({
      description: expect.stringMatching(/Idempotency key.* Or: Not enough capacity/) as unknown,
    });
  });

  it('describes the headers of answers', () => {
    for (const [name, operation] of everyOperation()) {
      for (const status of Object.keys(operation.responses)) {
        expect([name, status, responseOf(operation, status).headers]).toMatchObject([
          name,
          status,
          { 'X-Request-Id': expect.anything() as unknown },
        ]);
      }
      expect(Object.keys(responseOf(operation, '401').headers ?? {})).toContain('WWW-Authenticate');
      expect(Object.keys(responseOf(operation, '429').headers ?? {})).toEqual([
        'X-Request-Id',
        'Retry-After',
        'RateLimit',
        'RateLimit-Policy',
      ]);
      expect(Object.keys(responseOf(operation, '503').headers ?? {})).toContain('Retry-After');
    }
    expect(document.components?.responses?.['method_not_allowed']).toMatchObject({ headers: { Allow: expect.anything() as unknown } });
    const ofListing = document.paths['/api/team']?.get?.responses['200'];
    expect(Object.keys((ofListing as { headers: object }).headers)).toEqual(['X-Request-Id', 'RateLimit', 'RateLimit-Policy', 'Link']);
  });

  it('has the removed paths, deprecated, with their 410 and what replaces them', async () => {
    const removed = everyOperation().filter(([, { deprecated }]) => deprecated);
    expect(removed.map(([name]) => name)).toEqual([
      'get /api/gpuaas/{gpuaas_id}/pool-subscription',
      'get /api/gpuaas/{gpuaas_id}/connection-info',
      'get /api/logs/pods/{gpuaas_id}',
    ]);
    for (const [name, operation] of removed) {
      const { status, body } = await gateway.call('GET', name.replace('get ', '').replace('{gpuaas_id}', '7'), {
        key: gateway.services.key(),
      });
      expect(status).toBe(410);
      expect(body.detail).toContain(operation.summary?.replace('Removed: u', 'U'));
      expect(Object.keys(operation.responses)).toEqual(['401', '403', '410', '414', '429', '500', '503']);
    }
  });

  it('has no reference that leads nowhere, no schema without a type and nothing of 3.0', () => {
    const places = new Map(walk(document));
    for (const [path, value] of places) {
      if (path.endsWith('/$ref')) expect([path, places.has(value as string)]).toEqual([path, true]);
      if (path.endsWith('/schema')) expect([path, Object.keys(value as object)]).not.toEqual([path, []]);
      if (/\/properties\/\w+\/nullable$/.test(path)) throw new Error(`${path} is OpenAPI 3.0`);
    }
  });

  it('describes what is validated: lengths, ranges, presence, null', () => {
    const schemas = document.components?.schemas ?? {};
    expect(schemas['CreateTeam']).toMatchObject({
      required: ['name'],
      properties: { name: { type: 'string', minLength: 1, maxLength: 100 } },
    });
    expect(schemas['TeamMember']).toMatchObject({ properties: { api_key: { type: ['string', 'null'] } } });
    const query = (path: string): unknown =>
      document.paths[path]?.get?.parameters?.filter((parameter) => 'in' in parameter && parameter.in === 'query');
    const integer = { type: 'integer', minimum: 1 };
    expect(query('/api/team')).toMatchObject([
      { name: 'page', required: false, schema: { type: 'integer', minimum: 0, default: 0 } },
      { name: 'limit', required: false, schema: { ...integer, maximum: 100, default: 10 } },
    ]);
    expect(query('/api/policy/image')).toMatchObject([
      { name: 'page', schema: { ...integer, default: 1 } },
      { name: 'limit', schema: { ...integer, default: 10 } },
    ]);
    const [, limitOfAll] = query('/api/policy/image/team/{team_id}/objects') as { schema: object }[];
    expect(limitOfAll?.schema).not.toHaveProperty('default');
  });
});

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
      expect([url, status, headers['x-frame-options'], headers['referrer-policy']]).toEqual([url, 200, 'DENY', 'no-referrer']);
      const policy = new Map(headers['content-security-policy']?.split('; ').map((rule) => rule.split(/ (.*)/) as [string, string]));
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
