import { getSchemaPath, type OpenAPIObject } from '@nestjs/swagger';
import type { ErrorCode } from '@atoll/errors';
import { refusal } from '../answers/answers.js';
import { errorKinds } from '../errors/error-kinds.js';
import { Problem } from '../errors/problem.js';
import { headersOf, problemHeadersOf } from '../answers/headers.js';
import { keepsAnswer, walk, type Method, type Operation, type Response } from './operations.js';

const everywhere = [
  'invalid_input',
  'unauthenticated',
  'forbidden',
  'ip_not_allowed',
  'team_suspended',
  'not_found',
  'request_timeout',
  'payload_too_large',
  'uri_too_long',
  'unsupported_media_type',
  'too_many_requests',
  'internal',
  'unavailable',
  'deadline_exceeded',
] as const;

/** Input that Node.js rejects before it is a request has its own status, with the nearest code. */
const unread = {
  headers_too_large: {
    status: 431,
    description:
      'Request header fields too large. Send at most 1000 headers, and a request line and headers of 16 KiB at most.',
  },
};

/** Under `components`: each code by its name, and what is refused unread. */
export function problemResponses(): Record<string, Response> {
  const codes = Object.keys(errorKinds) as ErrorCode[];
  return Object.fromEntries([
    ...codes.map((code) => [code, problemResponse(code)] as const),
    ...Object.entries(unread).map(([name, { description }]) => [name, response(description)] as const),
  ]);
}

/** The problems of an operation, by status. */
export function addProblems(operation: Operation, method: Method): void {
  const { [refusal]: own, ...rest } = operation as Operation & { [refusal]?: ErrorCode };
  delete (operation as { [refusal]?: ErrorCode })[refusal];
  const codes = [
    ...everywhere,
    ...(method === 'get' ? [] : (['conflict'] as const)),
    ...(keepsAnswer(operation, method) ? (['idempotency_mismatch'] as const) : []),
    ...(own ? [own] : []),
  ];
  operation.responses = { ...rest.responses, ...referencesTo(codes) };
}

/** Of the responses under `components` only those stay that some operation refers to. */
export function dropUnused(responses: Record<string, unknown>, { paths }: OpenAPIObject): void {
  const used = new Set([...walk(paths)].flatMap((part) => ('$ref' in part ? [String(part.$ref)] : [])));
  for (const name of Object.keys(responses)) if (!used.has(`#/components/responses/${name}`)) delete responses[name];
}

export function addHeaders({ responses }: Operation): void {
  for (const answer of Object.values(responses)) {
    if (!answer || '$ref' in answer) continue;
    answer.headers = { ...headersOf('X-Request-Id', 'RateLimit', 'RateLimit-Policy'), ...answer.headers };
  }
}

/**
 * The responses of these codes by status, and of what is refused unread; a status of several codes has one response for
 * all.
 */
export function referencesTo(codes: readonly ErrorCode[]): Operation['responses'] {
  const byStatus = Map.groupBy(codes, (code) => errorKinds[code].status);
  const responses = [...byStatus].map(([status, [first, ...more]]) => [
    status,
    first && more.length > 0 ? problemResponse(first, ...more) : { $ref: `#/components/responses/${first}` },
  ]);
  const others = Object.entries(unread).map(([name, { status }]) => [
    status,
    { $ref: `#/components/responses/${name}` },
  ]);
  return Object.fromEntries([...responses, ...others]) as Operation['responses'];
}

/** Of the codes that share a status. */
function problemResponse(first: ErrorCode, ...more: ErrorCode[]): Response {
  const description = [first, ...more]
    .map((code) => `${errorKinds[code].title}. ${errorKinds[code].advice}`)
    .join(' Or: ');
  return { ...response(description), headers: problemHeadersOf(first) };
}

function response(description: string): Response {
  return {
    description,
    headers: headersOf('X-Request-Id'),
    content: { 'application/problem+json': { schema: { $ref: getSchemaPath(Problem) } } },
  };
}
