import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { timeoutFactor, type Answered } from '@atoll/testing';
import pg from 'pg';

/** The answer of the platform, read whole. */
export interface Answer<Body = Record<string, unknown>> {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: Body;
}

export interface CallOptions {
  /** Of another platform than the one under test. */
  url?: string;
  key?: string;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is. */
  raw?: string;
  headers?: Record<string, string | string[]>;
}

/** Where the platform under test listens, and its operator's key: set by the set-up of the suite. */
export const platformUrl = process.env.ATOLL_E2E_URL ?? '';
export const adminKey = process.env.ATOLL_E2E_ADMIN_KEY ?? '';
/** The database of the platform under test, for what no call can bring about. */
export async function query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
  const client = new pg.Client({ connectionString: process.env.ATOLL_E2E_DATABASE_URL });
  await client.connect();
  try {
    return (await client.query<Row>(sql, values)).rows;
  } finally {
    await client.end();
  }
}

/** Where its compatibility mount listens. */
export const compatUrl = process.env.ATOLL_E2E_COMPAT_URL ?? '';

/**
 * What waits for something else answers 503 after a while that is fixed, and on a machine that is said to be slow that
 * may be too short: what does no harm when it is done twice is asked again there.
 */
const mostTries = timeoutFactor > 1 ? 5 : 1;

/** Said before anything is done. */
const notBegun = new Set([
  'Too many people are logging in at the moment.',
  'Credentials cannot be checked at the moment.',
]);

let answers: Answered[] = [];

/** What the running story was answered until now. */
export function takeAnswers(): readonly Answered[] {
  const taken = answers;
  answers = [];
  return taken;
}

/**
 * A call, byte for byte as written: no client normalises the path, joins headers or leaves out the body of a GET.
 * `path` is appended to `/api`, as the reference writes it.
 */
export async function call<Body = Record<string, unknown>>(
  method: string,
  path: string,
  options: CallOptions = {},
): Promise<Answer<Body>> {
  for (let tries = 1; ; tries += 1) {
    const answer = await send<Body>(method, path, options);
    const retryAfterS = Number(answer.headers['retry-after'] ?? 0);
    if (answer.status !== 503) return answer;
    const hasKey = Object.keys(options.headers ?? {}).some((name) => name.toLowerCase() === 'idempotency-key');
    const mayBeTwice = method !== 'POST' || hasKey || notBegun.has((answer.body as { message?: string }).message ?? '');
    if (!mayBeTwice || retryAfterS === 0 || tries === mostTries) return answer;
    await delay(retryAfterS * 1_000);
  }
}

function send<Body>(method: string, path: string, options: CallOptions): Promise<Answer<Body>> {
  const { key, body, raw, headers = {} } = options;
  const url = new URL(options.url ?? platformUrl);
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body));
  const sent: Record<string, string | string[]> = {
    ...(key !== undefined && { authorization: `Bearer ${key}` }),
    ...(payload !== undefined && {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(payload)),
    }),
    ...headers,
  };
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { host: url.hostname, port: url.port, method, path: `/api${path}`, headers: sent },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          const json = /json/.test(incoming.headers['content-type'] ?? '');
          const status = incoming.statusCode ?? 0;
          answers.push({ call: `${method} /api${path}`, status, requestId: String(incoming.headers['x-request-id']) });
          resolve({
            status,
            headers: incoming.headers,
            body: (json ? JSON.parse(text) : text) as Body,
          });
        });
      },
    );
    outgoing.on('error', reject);
    outgoing.end(payload);
  });
}

export interface MemberView {
  user_id: string;
  email: string;
  name: string;
  role: string;
  status: string;
  api_key: string | null;
  api_token: boolean;
  expiry_date: string | null;
  ip_whitelist: string;
  /** In the answer to whoever invites, where no mail is sent. */
  invitation?: { url: string | null; expires_at: string };
}

export interface TeamView {
  id: string;
  name: string;
  description: string;
  created_at: string;
  status: string;
  is_suspended: boolean;
  has_pool_subscription: boolean;
  members: MemberView[];
  policy_info: { policy_id: string; policy_name: string };
  workspaces: { id: string; name: string }[];
}

let sequence = 0;

/** A name that no other story uses. */
export function fresh(name: string): string {
  sequence += 1;
  return `${name}-${process.pid}-${Date.now()}-${sequence}`;
}

/** An e-mail address that no other story uses. */
export function freshEmail(name: string): string {
  return `${fresh(name)}@example.com`;
}

/**
 * Asks again until what is read is as it should be, the less often the longer that takes: stories that wait together
 * would keep the platform busy with nothing else. Throws after the deadline, with what was read last.
 */
export async function until<T>(
  read: () => Promise<T>,
  isAsItShould: (found: T) => boolean,
  deadlineMs = 90_000,
): Promise<T> {
  const startedAt = Date.now();
  const deadline = startedAt + deadlineMs * timeoutFactor;
  for (;;) {
    const found = await read();
    if (isAsItShould(found)) return found;
    if (Date.now() > deadline) throw new Error(`Still ${JSON.stringify(found)} after ${deadlineMs} ms.`);
    await delay(Math.min(25 + (Date.now() - startedAt) / 8, 250));
  }
}

/** A platform, and who may do everything there. */
export interface Operated {
  url: string;
  adminKey: string;
}

export const underTest: Operated = { url: platformUrl, adminKey };

/**
 * What the call answers, which must be a success. One that waited too long for its turn, on a machine that is busy, is
 * made again, as its answer says.
 */
export async function succeed<Body>(method: string, path: string, options: CallOptions = {}): Promise<Body> {
  const { status, body } = await until(
    () => call<Body>(method, path, options),
    (answer) => answer.status !== 429,
  );
  if (status >= 300) throw new Error(`${method} ${path} answered ${status}: ${JSON.stringify(body)}`);
  return body;
}

/** A team with a member for each role; with the operator, who creates it, where none of them is team_owner. */
export async function createTeam(
  name: string,
  roles: string[] = ['team_owner'],
  platform: Operated = underTest,
): Promise<{ team: TeamView; keys: Record<string, string>; ids: Record<string, string> }> {
  const members = roles.map((role) => ({ email: freshEmail(role), name: role, role }));
  const body = await succeed<TeamView>('POST', '/team', {
    url: platform.url,
    key: platform.adminKey,
    body: { name, members },
  });
  const added = body.members.filter((member) => members.some(({ email }) => email === member.email));
  const keys = Object.fromEntries(added.map((member) => [member.role, member.api_key ?? '']));
  const ids = Object.fromEntries(added.map((member) => [member.role, member.user_id]));
  return { team: body, keys, ids };
}

/** A key of the user, with whom a story may do as it likes: the operator is the same in all of them. */
export async function userKeyOf(email: string): Promise<string> {
  const password = 'correct horse battery staple';
  const { url } = await succeed<{ url: string }>('POST', '/user/login-link', { key: adminKey, body: { email } });
  await succeed('POST', '/user/link', { body: { token: url.split('#')[1], password } });
  const headers = { origin: platformUrl, 'sec-fetch-site': 'same-origin' };
  const { access_token: key } = await succeed<{ access_token: string }>('POST', '/user/login', {
    body: { email, password },
    headers,
  });
  return (await succeed<{ api_key: string }>('POST', '/user/api-key', { key, body: {} })).api_key;
}

/**
 * Deletes a team with all that it holds, and waits until it is gone: a busy machine may take longer than the answer
 * waits.
 */
export async function endTeam(teamId: string, key: string): Promise<void> {
  const { status, body } = await call('DELETE', `/team/${teamId}?force=true`, { key });
  if (status !== 202 && status !== 204)
    throw new Error(`The deletion of the team answered ${status}: ${JSON.stringify(body)}`);
  await until(
    () => call('GET', `/team/${teamId}`, { key: adminKey }),
    (found) => found.status === 404,
  );
}

export interface Refusal {
  code: string;
  detail: string;
  errors?: { path: string; message: string }[];
}
