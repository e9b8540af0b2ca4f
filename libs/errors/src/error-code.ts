/**
 * The closed list of everything that can go wrong towards a caller. The gateway's status table
 * `satisfies Record<ErrorCode, number>`, so a new code does not compile until it has a status.
 */
export const errorCodes = [
  'invalid_input',
  'unauthenticated',
  'second_factor_required',
  'forbidden',
  'ip_not_allowed',
  'team_suspended',
  'image_not_allowed',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'conflict',
  'port_in_use',
  'gone',
  'payload_too_large',
  'uri_too_long',
  'unsupported_media_type',
  'idempotency_mismatch',
  'spec_mismatch',
  'insufficient_capacity',
  'not_supported',
  'too_many_requests',
  'internal',
  'unavailable',
  'deadline_exceeded',
] as const;

export type ErrorCode = (typeof errorCodes)[number];

const known: ReadonlySet<string> = new Set(errorCodes);

export function isErrorCode(value: unknown): value is ErrorCode {
  return typeof value === 'string' && known.has(value);
}
