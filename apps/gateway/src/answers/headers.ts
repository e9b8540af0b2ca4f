import type { ErrorCode } from '@atoll/errors';

const text = { type: 'string' as const };

/** The headers of answers, each described once, under `components`. */
export const answerHeaders = {
  'X-Request-Id': {
    description: 'Id of the request in the logs, as sent or generated.',
    required: true,
    schema: text,
  },
  RateLimit: {
    description: 'What is left (`r`) of each limit, and in how many seconds it is full again (`t`).',
    schema: text,
  },
  'RateLimit-Policy': {
    description: 'How many requests (`q`) each limit allows in how many seconds (`w`).',
    schema: text,
  },
  'Retry-After': {
    description: 'After how many seconds to try again.',
    required: true,
    schema: { type: 'integer' as const, minimum: 1 },
  },
  'WWW-Authenticate': {
    description: 'RFC 9110: the scheme of the credentials.',
    required: true,
    schema: { ...text, const: 'Bearer' },
  },
  Link: { description: 'RFC 8288: first, prev, next and last page.', schema: text },
};

type AnswerHeader = keyof typeof answerHeaders;

/** The `headers` of a response. */
export function headersOf(...names: readonly AnswerHeader[]): Record<string, { $ref: string }> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const byCode: Partial<Record<ErrorCode, readonly AnswerHeader[]>> = {
  unauthenticated: ['WWW-Authenticate', 'RateLimit', 'RateLimit-Policy'],
  too_many_requests: ['Retry-After', 'RateLimit', 'RateLimit-Policy'],
  unavailable: ['Retry-After'],
};

/** The headers of a problem. */
export function problemHeadersOf(code: ErrorCode): Record<string, { $ref: string }> {
  return headersOf('X-Request-Id', ...(byCode[code] ?? []));
}
