import { RefreshFailed } from '@atoll/session-tab';
import type { components } from './generated/openapi.js';

type ProblemBody = components['schemas']['Problem'];

/** A refusal of the platform, or no answer at all, as every page shows it. */
export class Problem extends Error {
  override readonly name = 'Problem';

  constructor(
    /** HTTP status; 0 where nothing answered. */
    readonly status: number,
    readonly code: string,
    /** The platform's message: what is wrong and what to do. */
    readonly detail: string,
    readonly requestId: string | null,
    /** Faults of single fields, by their path. */
    readonly fields: Readonly<Record<string, string>> = {},
    readonly retryAfterSeconds: number | null = null,
  ) {
    super(detail);
  }
}

/** What a failed call has become, whatever its body is. */
export function problemOf(response: Response, body: unknown): Problem {
  if (response.ok) return foreign();
  const { code, detail, request_id, errors } = isProblem(body) ? body : {};
  const fields = Object.fromEntries((errors ?? []).map(({ path, message }) => [path, message]));
  return new Problem(
    response.status,
    code ?? 'unknown',
    detail ?? `The platform answered ${response.status} without saying why.`,
    request_id ?? response.headers.get('x-request-id'),
    fields,
    Number(response.headers.get('retry-after')) || null,
  );
}

export function unreachable(): Problem {
  return new Problem(0, 'offline', 'The platform cannot be reached. Check the network.', null);
}

/** An answer that the platform never gives: no JSON where it was to be a success. */
function foreign(): Problem {
  return new Problem(
    0,
    'foreign',
    'Something else answered in the place of the platform, such as the log-in page of a network or of a proxy, or only a part of the answer came. Open this address in another tab to see what answers there.',
    null,
  );
}

/** By the name of what is thrown: a DOMException of WebAuthn Level 3 (5.1), or `NoPasskeys` of the session. */
const passkeyFaults: Record<string, { code: 'no_passkey' | 'no_passkeys'; detail: string }> = {
  NotAllowedError: {
    code: 'no_passkey',
    detail: 'It was cancelled, took too long, or the device has none for this platform. Try again.',
  },
  InvalidStateError: { code: 'no_passkey', detail: 'This device has a passkey of yours already.' },
  NotSupportedError: {
    code: 'no_passkeys',
    detail: 'This device makes no passkeys of the kind that the platform takes. Try another one.',
  },
  SecurityError: {
    code: 'no_passkeys',
    detail: 'This page is open at another address than the platform’s own, such as 127.0.0.1 in place of localhost.',
  },
  NoPasskeys: {
    code: 'no_passkeys',
    detail: 'They need an address that begins with https, or localhost, and a browser that is up to date.',
  },
};

/** What a call threw, as a problem. Browsers throw a `TypeError` where nothing answered, or a body broke off. */
export function problemOfCall(error: unknown): Problem {
  return error instanceof TypeError ? unreachable() : asProblem(error);
}

/** Any thrown value as a problem. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof RefreshFailed)
    return error.refusal ? problemOf(error.refusal.response, error.refusal.body) : unreachable();
  // The body was no JSON.
  if (error instanceof SyntaxError) return foreign();
  const fault = passkeyFaults[(error as Error | null)?.name ?? ''];
  if (fault) return new Problem(0, fault.code, fault.detail, null);
  return new Problem(0, 'console', error instanceof Error ? error.message : 'The console failed.', null);
}

function isProblem(body: unknown): body is Partial<ProblemBody> {
  return typeof body === 'object' && body !== null && 'code' in body;
}

const advice: Record<string, string> = {
  offline: 'This page tries again by itself.',
  foreign: 'This page tries again by itself.',
  forbidden: 'Ask an owner or admin of the team for a role that may do this.',
  team_suspended: 'The team is suspended: it may read, stop and delete. Ask the operator.',
  not_found: 'It may have been deleted, or belong to a team you are not a member of.',
  too_many_requests: 'This page tries again when it may.',
  unavailable: 'A part of the platform is down or restarting. This page tries again by itself.',
  deadline_exceeded: 'The platform took too long. Try again; what was begun is not done twice.',
  internal: 'This is a fault of the platform. Give the request id to the operator.',
  ip_not_allowed: 'Your key may not be used from this address. Ask an admin of the team to change its list.',
  idempotency_mismatch: 'What you sent first was done. Close this, and look at what is there now.',
  insufficient_capacity: 'Ask for fewer vGPUs or another profile, or choose another pool.',
};

/**
 * Advice for the user; undefined if the detail says enough. A refusal has many possible reasons; a role is only one.
 */
export function adviceFor({ code, detail }: Problem): string | undefined {
  if (code === 'forbidden' && !detail.startsWith('The role ')) return undefined;
  return advice[code];
}

/** When it may be tried again, where the platform says so. */
export function waitOf({ retryAfterSeconds }: Problem): string | undefined {
  if (retryAfterSeconds === null) return undefined;
  if (retryAfterSeconds > 90) return `Try again in ${Math.ceil(retryAfterSeconds / 60)} minutes.`;
  return `Try again in ${retryAfterSeconds} ${retryAfterSeconds === 1 ? 'second' : 'seconds'}.`;
}

/** Whether the one-time link that was used is good for nothing any more. */
export function isOfDeadLink({ code, detail }: Problem): boolean {
  return code === 'unauthenticated' && detail.startsWith('The link cannot be used');
}

/** Whether a new log-in, perhaps with the second factor, may do what was refused: ADR 62. */
export function takesNewLogIn({ code, detail }: Problem): boolean {
  return code === 'forbidden' && /\blog in (?:again|with (?:it|yours))\b/i.test(detail);
}

/** Whether it tells of a role, or a membership in a team, that the caller had when the profile was read, and lost. */
export function isOfRole({ code, detail }: Problem): boolean {
  if (code === 'forbidden') return detail.startsWith('The role ') || detail === 'Only a platform_admin may do this.';
  return code === 'not_found' && detail === 'No such team.';
}

/** The fault of a field, or of its first faulty part, such as `ports.0`. */
export function faultAt({ fields }: Problem, path: string): string | undefined {
  return fields[path] ?? Object.entries(fields).find(([name]) => name.startsWith(`${path}.`))?.[1];
}

/** Worth another try without anyone's doing. A proxy before the platform answers 502 while a gateway restarts. */
export function isPassing({ status }: Problem): boolean {
  return status === 0 || status === 429 || status === 502 || status === 503 || status === 504;
}
