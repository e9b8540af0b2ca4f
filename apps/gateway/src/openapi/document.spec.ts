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
  routes = routesIn(table).filter((route) => !/\/api\/(docs|openapi)|\/(livez|readyz|metrics)$/.test(route));
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

function operations(): [string, Operation][] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]): [string, Operation] => [`${method} ${path}`, operation as Operation]),
  );
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
    expect(routes.length).toBeGreaterThan(25);
    expect(
      operations()
        .map(([name]) => name)
        .sort(),
    ).toEqual([...routes].sort());
  });

  it('names each operation once, with what it does, its tag, its answer and its problems', () => {
    const ids = operations().map(([, { operationId }]) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const [name, operation] of operations()) {
      expect([name, operation.summary]).toEqual([name, expect.stringMatching(/\.$/)]);
      expect(document.tags?.map((tag) => tag.name)).toContain(operation.tags?.[0]);
      const statuses = Object.keys(operation.responses);
      expect(statuses.filter((status) => status.startsWith('2'))).toHaveLength(1);
      expect(statuses).toEqual(expect.arrayContaining(['400', '401', '403', '404', '429', '500', '503', '504']));
    }
  });

  it('declares each parameter of a path, a body wherever there is one, and both ways to authenticate', () => {
    for (const [name, { parameters = [], requestBody }] of operations()) {
      const declared = parameters.flatMap((parameter) => ('in' in parameter && parameter.in === 'path' ? [parameter.name] : []));
      expect([name, declared.sort()]).toEqual([name, [...name.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter).sort()]);
      if (/^put/.test(name)) expect([name, requestBody]).toEqual([name, expect.anything()]);
    }
    expect(document.paths['/api/team']?.post?.requestBody).toMatchObject({ required: true });
    expect(document.paths['/api/user/api-key']?.post?.requestBody).toMatchObject({ required: false });
    expect(document.security).toEqual([{ bearer: [] }, { api_key: [] }]);
    expect(Object.keys(document.components?.securitySchemes ?? {})).toEqual(['bearer', 'api_key']);
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
    const page = document.paths['/api/team']?.get?.parameters?.find((parameter) => 'name' in parameter && parameter.name === 'limit');
    expect(page).toMatchObject({ in: 'query', required: false, schema: { type: 'integer', minimum: 1, maximum: 100 } });
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

  it('explain every code at its anchor', async () => {
    const { status, body } = await gateway.call<string>('GET', '/api/docs/errors');
    expect(status).toBe(200);
    for (const code of errorCodes) expect(body).toContain(`<section id="${code}">`);
  });
});
