import type { ErrorCode } from '@atoll/errors';

export interface ErrorKind {
  status: number;
  title: string;
  /** What the caller can do about it: a sentence or two on `/api/docs/errors`. */
  advice: string;
}

/** Everything a caller can be told, in one table: a new code does not compile until it has its row. */
export const errorKinds = {
  invalid_input: {
    status: 400,
    title: 'Invalid input',
    advice:
      'Correct the fields named in `errors`; each says what is allowed. `errors` lists the first 100 faults; `detail` says how many there are. Sending the same request again does not help.',
  },
  unauthenticated: {
    status: 401,
    title: 'Not authenticated',
    advice:
      'Send one live API key as `Authorization: Bearer <API_KEY>` or `x-api-key: <API_KEY>`. A key in the query string is not read.',
  },
  second_factor_required: {
    status: 401,
    title: 'Second factor required',
    advice:
      'The password is right. Send `ticket` with a code to `POST /api/user/login/second-factor` within `expires_in` seconds.',
  },
  forbidden: {
    status: 403,
    title: 'Not allowed',
    advice: 'Your role does not allow this operation. Ask a team_owner or team_admin of the team, or the operator.',
  },
  ip_not_allowed: {
    status: 403,
    title: 'Address not allowed',
    advice:
      "The key's `ip_whitelist` does not hold the address you call from. Call from a listed one, or have the key issued again.",
  },
  team_suspended: {
    status: 403,
    title: 'Team suspended',
    advice: 'A suspended team may read, stop, unsubscribe and delete. Ask the operator to lift the suspension.',
  },
  image_not_allowed: {
    status: 403,
    title: 'Image not allowed',
    advice:
      "The team's image policy does not cover the image. `GET /policy/image/team/{team_id}/objects` lists what it covers.",
  },
  not_found: {
    status: 404,
    title: 'Not found',
    advice: 'Check the path and the identifiers. Objects of teams that you do not belong to are not found either.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    advice: 'The path exists under other methods: the `Allow` header lists them.',
  },
  request_timeout: {
    status: 408,
    title: 'Request timeout',
    advice: 'The request did not arrive within 30 seconds, or its head within 15. Send it again.',
  },
  conflict: {
    status: 409,
    title: 'Conflict',
    advice:
      'The state of the object, or an object with the same name, conflicts with the request. Read the object, then decide. A request with the same idempotency key may still be running.',
  },
  port_in_use: {
    status: 409,
    title: 'Port in use',
    advice:
      'Another service has this external port. Choose another one, or leave `external_port` out and the platform picks one.',
  },
  gone: {
    status: 410,
    title: 'Gone',
    advice: 'The path was removed from the API. `detail` names what replaces it.',
  },
  payload_too_large: {
    status: 413,
    title: 'Request too large',
    advice: 'Send a smaller body (64 KiB at most) and fewer or smaller headers (1000, and 16 KiB, at most).',
  },
  uri_too_long: {
    status: 414,
    title: 'URI too long',
    advice: 'Send a path and query of 8 KiB at most.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    advice: 'Send the body as JSON, with `Content-Type: application/json`.',
  },
  idempotency_mismatch: {
    status: 422,
    title: 'Idempotency key used before',
    advice: 'The key was used for another request within the last 24 hours. Use a new key for a new request.',
  },
  spec_mismatch: {
    status: 422,
    title: 'No such hardware',
    advice: 'Nothing here could ever meet the requirements named in `errors`. Ask for less, or ask the operator.',
  },
  insufficient_capacity: {
    status: 422,
    title: 'Not enough capacity',
    advice: 'What was asked for is taken. `detail` says what would fit; otherwise try again later.',
  },
  not_supported: {
    status: 422,
    title: 'Not supported',
    advice:
      'The cluster behind this GPU service cannot do it. `detail` says what; use another GPU service, or ask the operator.',
  },
  too_many_requests: {
    status: 429,
    title: 'Too many requests',
    advice:
      'Wait for the seconds in `Retry-After`. `RateLimit` and `RateLimit-Policy` tell which limit was used up. Where none was, too much of your team was under way at once: ask for less at a time. Until you accept an invitation, your key to that team shares a limit, and the calls that may be under way, with other keys that the same user was shown.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    advice: 'A fault on our side. Report it with its `request_id`.',
  },
  unavailable: {
    status: 503,
    title: 'Unavailable',
    advice: 'Something the request needs is down or has too much to do. Try again after the seconds in `Retry-After`.',
  },
  deadline_exceeded: {
    status: 504,
    title: 'No answer in time',
    advice:
      'The request may have taken effect. Repeat it with the same `Idempotency-Key`, or read before you repeat it.',
  },
} as const satisfies Record<ErrorCode, ErrorKind>;
