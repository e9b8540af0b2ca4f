import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { OpenAPIObject } from '@nestjs/swagger';
import { teamRoles } from '@atoll/contracts';
import { operationsOf } from './operations.js';
import { releasedOperationIds } from './released-operation-ids-fixture.js';
import { startGateway, type GatewayUnderTest } from '../testing/gateway-fixture.js';

interface Properties {
  properties?: Record<string, { description?: string }>;
}

interface Link {
  operationId: string;
  parameters?: Record<string, string>;
}

const successDescriptions: Record<string, string> = { 200: 'OK', 201: 'Created', 202: 'Accepted', 204: 'No Content' };

type Operation = NonNullable<OpenAPIObject['paths'][string]['get']>;

let gateway: GatewayUnderTest;
let document: OpenAPIObject;
let routes: string[];
beforeAll(async () => {
  gateway = await startGateway();
  document = (await gateway.call<OpenAPIObject>('GET', '/api/openapi.json')).body;
  const table = gateway.app.getHttpAdapter().getInstance().printRoutes({ commonPrefix: false });
  routes = routesIn(table).filter(
    (one) => !/i\/(docs|openapi|user\/sso\/\{)|^get \/(log|link|page)|\/(livez|readyz|metrics|)$/.test(one),
  );
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
    Object.entries(item).map(([method, operation]): [string, Operation] => [
      `${method} ${path}`,
      operation as Operation,
    ]),
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
  for (const [name, child] of Object.entries(value))
    yield* walk(child, `${path}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`);
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
    const described = operations().map(([name]) => name);
    expect(described.sort()).toEqual([...routes].sort());
  });

  it('names each operation once, plainly, and keeps the names that generated clients know', () => {
    const ids = everyOperation().map(([, { operationId = '' }]) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const id of ids) expect(id).toMatch(/^[a-z]+(?:[A-Z][a-z]+)+$/);
    expect(ids).toEqual(expect.arrayContaining([...releasedOperationIds]));
  });

  it('says of each operation what it does, its tag, its success and its problems', () => {
    for (const [name, { summary, description, tags = [], responses }] of operations()) {
      expect([name, summary]).toEqual([name, expect.stringMatching(/^[A-Z][a-z]+ [^.]*$/)]);
      expect([name, description]).toEqual([name, expect.stringMatching(/^[A-Z`].*\.$/s)]);
      expect(document.tags?.map((tag) => tag.name)).toContain(tags[0]);
      const statuses = Object.keys(responses);
      const successes = statuses.filter((status) => status.startsWith('2'));
      // An operation that may take longer than its response says so by 202.
      expect([name, successes.length === 1 || successes.join() === '202,204']).toEqual([name, true]);
      for (const status of successes)
        expect([name, responses[status]]).toMatchObject([name, { description: successDescriptions[status] }]);
      const everywhere = ['400', '401', '403', '404', '408', '413', '414', '415', '429', '431', '500', '503', '504'];
      expect(statuses).toEqual(expect.arrayContaining(everywhere));
    }
    for (const tag of document.tags ?? []) expect(tag.description).toMatch(/^[A-Z].*\.$/);
  });

  it('declares the parameters of a path in its order', () => {
    for (const [name, { parameters = [] }] of everyOperation()) {
      const declared = parameters.flatMap((parameter) =>
        'in' in parameter && parameter.in === 'path' ? [parameter.name] : [],
      );
      expect([name, declared]).toEqual([name, [...name.matchAll(/\{(\w+)\}/g)].map(([, parameter]) => parameter)]);
    }
  });

  it('describes every field and parameter by a noun phrase', () => {
    const fields = Object.entries(document.components?.schemas ?? {}).flatMap(([schema, definition]) =>
      Object.entries((definition as Properties).properties ?? {}).map(([name, { description }]) => [
        schema,
        name,
        description,
      ]),
    );
    const parameters = everyOperation().flatMap(([operation, { parameters = [] }]) =>
      parameters.flatMap((one) => ('name' in one ? [[operation, one.name, one.description]] : [])),
    );
    const nounPhrase = /^(?!Where|When|What|How|Of|Whoever)(?:[A-Z]|vGPU).*\.$/s;
    expect([...fields, ...parameters].filter(([, , description]) => !nounPhrase.test(description ?? ''))).toEqual([]);
  });

  it('names every list of words, so that clients have one type for it', () => {
    const inline = [...walk(document)]
      .filter(([path, value]) => path.endsWith('/enum') && Array.isArray(value))
      .map(([path]) => path)
      .filter((path) => !/^#\/components\/schemas\/\w+\/enum$/.test(path));
    // The word that stands beside an id, in the paths of two bills.
    expect(inline.filter((path) => !path.endsWith('/schema/anyOf/1/enum'))).toEqual([]);
    expect(document.components?.schemas?.['TeamRole']).toEqual({ type: 'string', enum: [...teamRoles] });
  });

  it('takes a numeric id as a number or as its digits, and returns its digits', () => {
    const schemas = document.components?.schemas ?? {};
    const id = { $ref: '#/components/schemas/NumericId' };
    expect(schemas['NumericId']).toMatchObject({
      type: ['string', 'integer'],
      pattern: '^[1-9]\\d{0,14}$',
      minimum: 1,
    });
    expect(schemas['Subscribe']).toMatchObject({ properties: { pool_id: id } });
    expect(schemas['CreatePool']).toMatchObject({ properties: { gpu_ids: { items: id } } });
    expect(schemas['Pool']).toMatchObject({
      properties: { pool_id: { type: 'string' }, gpu_ids: { items: { type: 'string' } } },
    });
    const schemasIn = (path: string, method: 'get' | 'put') =>
      document.paths[path]?.[method]?.parameters?.flatMap((one) => ('schema' in one ? [[one.name, one.schema]] : []));
    expect(schemasIn('/api/gpuaas/pool-subscription/{subscription_id}', 'put')).toMatchObject([
      ['subscription_id', id],
    ]);
    expect(schemasIn('/api/gpuaas/available-pools', 'get')).toContainEqual(['gpuaas_id', expect.objectContaining(id)]);
  });

  it('links what creates an object to each operation on it, by parameters that these have', () => {
    const byId = new Map(everyOperation().map(([, operation]) => [operation.operationId, operation]));
    const linked = everyOperation().flatMap(([, { operationId, responses }]) =>
      Object.values(responses).flatMap((response) =>
        Object.values((response as { links?: Record<string, Link> }).links ?? {}).map(
          (link) => [operationId, link] as const,
        ),
      ),
    );
    for (const [source, { operationId, parameters = {} }] of linked) {
      const known = byId.get(operationId)?.parameters?.flatMap((one) => ('name' in one ? [one.name] : []));
      expect([source, operationId, known]).toEqual([
        source,
        operationId,
        expect.arrayContaining(Object.keys(parameters)),
      ]);
    }
    const targetsOf = (id: string) =>
      linked.filter(([source]) => source === id).map(([, { operationId }]) => operationId);
    expect(targetsOf('createTeam')).toEqual(
      expect.arrayContaining(['getTeam', 'addTeamMember', 'listWorkspaces', 'listAvailablePools']),
    );
    expect(targetsOf('addTeamMember')).toEqual(expect.arrayContaining(['changeTeamMemberRole', 'issueTeamMemberKey']));
    expect(targetsOf('subscribeToPool')).toEqual(expect.arrayContaining(['resizeSubscription', 'unsubscribeFromPool']));
    expect(targetsOf('registerNode')).toEqual(expect.arrayContaining(['getNode', 'initialiseNode', 'cordonNode']));
  });

  it('declares a body wherever there is one, and both ways to authenticate', () => {
    for (const [name, { requestBody }] of operations()) {
      if (name.startsWith('put'))
        expect([name, requestBody]).toEqual([name, expect.objectContaining({ required: true })]);
    }
    expect(document.paths['/api/team']?.post?.requestBody).toMatchObject({ required: true });
    expect(document.paths['/api/user/api-key']?.post?.requestBody).toMatchObject({ required: false });
    expect(document.security).toEqual([{ bearer: [] }, { api_key: [] }]);
    expect(document.components?.securitySchemes).toEqual({
      bearer: { type: 'http', scheme: 'bearer', description: 'An API key, or the access token of a session.' },
      api_key: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key.' },
    });
  });

  it('asks for a credential where a call without one is refused, and nowhere else', async () => {
    for (const { path, method, operation } of operationsOf(document)) {
      const { body } = await gateway.call(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, 'x'));
      const isRefused = /^This call needs a credential/.test(body?.detail ?? '');
      expect([method, path, operation.security ?? 'a credential']).toEqual([
        method,
        path,
        isRefused ? 'a credential' : [{}],
      ]);
    }
  });

  it('refuses unknown fields of what is sent, at any depth, and not of what is answered', () => {
    const sent = schemasOf(operations().map(([, { requestBody }]) => requestBody));
    const answered = schemasOf([operations().map(([, { responses }]) => responses), document.components?.responses]);
    expect([...sent]).toEqual(
      expect.arrayContaining([
        'CreateTeam',
        'NewMember',
        'UpdateTeamBody',
        'NewImageObject',
        'KeyTerms',
        'CreatePool',
        'NodeGpus',
      ]),
    );
    expect([...answered]).toEqual(expect.arrayContaining(['Team', 'TeamMember', 'Pool', 'GpuTenant', 'Problem']));
    for (const name of sent) {
      const schema = document.components?.schemas?.[name] as { type: unknown };
      if (schema.type === 'object') expect([name, schema]).toMatchObject([name, { additionalProperties: false }]);
    }
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
    const refusing = everyOperation().filter(([, { responses }]) =>
      JSON.stringify(responses['422'] ?? {}).match(/capacity/),
    );
    expect(refusing.map(([name]) => name).sort()).toEqual([
      'post /api/gpuaas/pool/subscribe',
      'post /api/gpuaas/workload',
      ...['post /api/pods', 'post /api/pods/action'],
      'put /api/gpuaas/pool-subscription/{subscription_id}',
    ]);
    const refusal = document.paths['/api/gpuaas/pool/subscribe']?.post?.responses['422'] as { description: string };
    expect(refusal.description).toMatch(/Idempotency key.* Or: Not enough capacity/);
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
    const ofListing = document.paths['/api/team']?.get?.responses['200'];
    expect(Object.keys((ofListing as { headers: object }).headers)).toEqual([
      'X-Request-Id',
      'RateLimit',
      'RateLimit-Policy',
      'Link',
    ]);
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
      expect(body.detail).toContain(operation.summary);
      expect(Object.keys(operation.responses)).toEqual([
        '400',
        '401',
        '403',
        '408',
        '410',
        '414',
        '429',
        '431',
        '500',
        '503',
      ]);
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

  it('shows a start of a price that is not in the past, where it needs `force`', () => {
    const price = document.components?.schemas?.['CreatePrice'] as { properties: { valid_from: { example: string } } };
    expect(Date.parse(price.properties.valid_from.example)).toBeGreaterThan(Date.now());
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
      { name: 'search', required: false, schema: { type: 'string', minLength: 0, maxLength: 200 } },
    ]);
    expect(query('/api/policy/image')).toMatchObject([
      { name: 'page', schema: { ...integer, default: 1 } },
      { name: 'limit', schema: { ...integer, default: 10 } },
    ]);
    const [, limitOfAll] = query('/api/policy/image/team/{team_id}/objects') as { schema: object }[];
    expect(limitOfAll?.schema).not.toHaveProperty('default');
  });
});
