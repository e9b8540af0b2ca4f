import type { INestApplication } from '@nestjs/common';
import type { ErrorCode } from '@atoll/errors';
import { DocumentBuilder, getSchemaPath, SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import { refusal } from '../answers/answers.js';
import { errorKinds } from '../errors/error-kinds.js';
import { Problem } from '../errors/problem.js';
import { removedPaths } from '../requests/removed-paths.js';
import { answerHeaders, headersOf, problemHeadersOf } from './headers.js';
import { describeBody } from './request-body.js';

type Operation = NonNullable<OpenAPIObject['paths'][string]['get']>;
type Response = NonNullable<Operation['responses'][string]>;

const description = `The control plane of a GPU cloud.

Every error, from whichever layer, is an \`application/problem+json\` body; [what each code means](/api/docs/errors).
Requests are refused in this order: credentials (401), address (403), rate limit (429), route (404, 405, 410), input (400), object (404, 403).
Unknown body fields and query parameters are refused. What belongs to a team you are no member of is not found.`;

const tags: [string, string][] = [
  ['Teams', 'Teams and their state.'],
  ['Members', 'Who belongs to a team, in which role, and the keys to it.'],
  ['Workspaces', 'Parts of a team, to group what runs.'],
  ['Image policies', 'Which images a team may run.'],
  ['Billing', 'What was held, for how long, and what it cost.'],
  ['Prices and usage', 'What units cost, and facts of what is held. For a platform_admin.'],
  ['GPU inventory', 'Regions, the GPU services in them, and their nodes. For a platform_admin.'],
  ['GPU pools', 'GPUs that are shared in one way, and what teams can have of them.'],
  ['Pool subscriptions', 'What a team holds of a pool.'],
  ['Workloads', 'What runs on a subscription.'],
  ['Connections', 'How what runs is reached, and what may attach to it.'],
  ['User', 'The caller: profile and keys of their own.'],
  ['Removed', 'What is gone, and what replaces it.'],
];

/** The OpenAPI 3.1 document, from the same classes that validate. */
export function openApiDocument(app: INestApplication): OpenAPIObject {
  const builder = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('Atoll')
    .setDescription(description)
    .setVersion('1')
    .setLicense('Apache-2.0', 'https://www.apache.org/licenses/LICENSE-2.0')
    .addServer('/')
    .addSecurity('bearer', { type: 'http', scheme: 'bearer', description: 'An API key.' })
    .addApiKey({ type: 'apiKey', in: 'header', name: 'x-api-key', description: 'An API key.' }, 'api_key')
    .addSecurityRequirements('bearer')
    .addSecurityRequirements('api_key');
  for (const [name, meaning] of tags) builder.addTag(name, meaning);
  const document = SwaggerModule.createDocument(app, builder.build(), {
    extraModels: [Problem],
    operationIdFactory: (controller, method) => `${controller.replace('Controller', '').toLowerCase()}_${method}`,
  });
  addCommonParts(document);
  addRemovedPaths(document);
  return document;
}

const everywhere = [
  'invalid_input',
  'unauthenticated',
  'forbidden',
  'ip_not_allowed',
  'team_suspended',
  'not_found',
  'payload_too_large',
  'uri_too_long',
  'unsupported_media_type',
  'too_many_requests',
  'internal',
  'unavailable',
  'deadline_exceeded',
] as const;
const ofRemovedPaths = [
  'unauthenticated',
  'ip_not_allowed',
  'gone',
  'uri_too_long',
  'too_many_requests',
  'internal',
  'unavailable',
] as const;

/** What holds for every operation is not written at each: the problems it may answer, headers, its idempotency key. */
function addCommonParts(document: OpenAPIObject): void {
  document.components = { ...document.components, responses: problemResponses(), parameters: commonParameters, headers: answerHeaders };
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of ['get', 'post', 'put', 'delete'] as const) {
      const operation = item[method];
      if (!operation) continue;
      operation.parameters = parametersOf(operation, path);
      for (const response of Object.values(operation.responses)) addHeaders(response);
      addProblems(operation, method);
      describeBody(operation, method, document.components.schemas ?? {});
    }
  }
}

/** A handler of two paths declares the segments of the longer one; and what stands in a path is never left out. */
function parametersOf({ parameters = [] }: Operation, path: string): NonNullable<Operation['parameters']> {
  return parameters
    .filter((parameter) => !('in' in parameter) || parameter.in !== 'path' || path.includes(`{${parameter.name}}`))
    .map((parameter) => ('in' in parameter && parameter.in === 'path' ? { ...parameter, required: true } : parameter));
}

function addHeaders(response: Response | undefined): void {
  if (!response || '$ref' in response) return;
  response.headers = { ...headersOf('X-Request-Id', 'RateLimit', 'RateLimit-Policy'), ...response.headers };
}

function addProblems(operation: Operation, method: string): void {
  const { [refusal]: own } = operation as { [refusal]?: ErrorCode };
  const kinds = [
    ...everywhere,
    ...(method === 'get' ? [] : (['conflict'] as const)),
    ...(method === 'post' ? (['idempotency_mismatch'] as const) : []),
    ...(own ? [own] : []),
  ];
  Object.assign(operation.responses, referencesTo(kinds));
  const names = ['RequestId', ...(method === 'post' ? ['IdempotencyKey'] : [])];
  operation.parameters = [...(operation.parameters ?? []), ...names.map((name) => ({ $ref: `#/components/parameters/${name}` }))];
}

/** Documented for those who still call them; no route has them. */
function addRemovedPaths({ paths }: OpenAPIObject): void {
  for (const { path, replacement } of removedPaths) {
    const gpuaas = { name: 'gpuaas_id', in: 'path' as const, required: true, schema: { type: 'string' as const } };
    const operation: Operation = {
      operationId: `removed_${path.replace('/{gpuaas_id}', '').replace('/api/', '').replaceAll(/\W/g, '_')}`,
      summary: `Removed: use ${replacement}.`,
      deprecated: true,
      tags: ['Removed'],
      parameters: [gpuaas, { $ref: '#/components/parameters/RequestId' }],
      responses: referencesTo(ofRemovedPaths),
    };
    paths[path] = { ...paths[path], get: operation };
  }
}

function referencesTo(codes: readonly ErrorCode[]): Operation['responses'] {
  const byStatus = Map.groupBy(codes, (code) => errorKinds[code].status);
  const responses = [...byStatus].map(([status, [first, ...more]]) => [
    status,
    first && more.length > 0 ? problemResponse(first, ...more) : { $ref: `#/components/responses/${first}` },
  ]);
  return Object.fromEntries(responses) as Operation['responses'];
}

function problemResponses(): Record<string, Response> {
  const codes = Object.keys(errorKinds) as ErrorCode[];
  return Object.fromEntries(codes.map((code) => [code, problemResponse(code)]));
}

/** Of the codes that share a status. */
function problemResponse(first: ErrorCode, ...more: ErrorCode[]): Response {
  return {
    description: [first, ...more].map((code) => `${errorKinds[code].title}. ${errorKinds[code].advice}`).join(' Or: '),
    headers: problemHeadersOf(first),
    content: { 'application/problem+json': { schema: { $ref: getSchemaPath(Problem) } } },
  };
}

const commonParameters = {
  RequestId: {
    name: 'X-Request-Id',
    in: 'header' as const,
    required: false,
    description: 'Names the request in answers and logs; one is made where none is sent.',
    schema: { type: 'string' as const, pattern: '^[A-Za-z0-9._-]{1,128}$' },
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header' as const,
    required: false,
    description: 'Calls with one key within 24 hours are one call: the answer of the first is given again, secrets masked.',
    schema: { type: 'string' as const, minLength: 1, maxLength: 255 },
  },
};
