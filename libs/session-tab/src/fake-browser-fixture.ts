import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import { SessionTab, type TabState } from './session-tab.js';

type Answer = { status: number; body: object | null };
/** How long a message is under way: fast-check decides in which order they arrive. */
type Way = <T>(what: string, value: T) => Promise<T>;

const atOnce: Way = (_what, value) => Promise.resolve(value);

/** The server of one browser: its cookie is that of the last log-in, and each session has tokens until it ends. */
class Server {
  private cookie: string | undefined;
  private readonly users = new Map<string, string>();
  private count = 0;
  /** Status with which refreshes are refused. */
  refuses: number | undefined;
  /** What a path answers, whatever was asked. */
  readonly answers = new Map<string, Answer>();
  /** Of a token: so short that each call refreshes it. */
  lifeS = 10;
  readonly calls: string[] = [];
  readonly bodies: (object | undefined)[] = [];
  /** What the refreshes named as their attempt. */
  readonly attempts: (string | null)[] = [];

  answer(path: string, headers: Headers, body: { email?: string } | undefined): Answer {
    const authorization = headers.get('authorization');
    this.calls.push(path);
    if (path === '/user/refresh') this.attempts.push(headers.get('refresh-attempt'));
    this.bodies.push(body);
    const fixed = this.answers.get(path);
    if (fixed) return fixed;
    if (path === '/user/login') {
      this.cookie = `session-${(this.count += 1)}`;
      this.users.set(this.cookie, body?.email ?? '');
      return this.tokenOf(this.cookie);
    }
    if (path === '/user/refresh') {
      if (this.refuses) return { status: this.refuses, body: {} };
      return this.cookie !== undefined && this.users.has(this.cookie)
        ? this.tokenOf(this.cookie)
        : { status: 401, body: {} };
    }
    const token = authorization?.split(' ')[1] ?? '';
    if (path === '/user/logout') {
      // A token beside the cookie of another session must be good.
      if (this.cookie !== undefined && token !== '' && token !== this.cookie && !this.users.has(token))
        return { status: 401, body: {} };
      if (token === '' || token === this.cookie || this.users.get(token) === this.users.get(this.cookie ?? '')) {
        this.end();
        this.cookie = undefined;
      }
      this.users.delete(token);
      return { status: 204, body: null };
    }
    return { status: this.users.has(token) ? 200 : 401, body: {} };
  }

  /** Who has a session that lives. */
  get present(): string[] {
    return [...this.users.values()];
  }

  end(session = this.cookie): void {
    this.users.delete(session ?? '');
  }

  private tokenOf(session: string): Answer {
    const email = this.users.get(session) ?? '';
    return {
      status: 200,
      body: { access_token: session, expires_in: this.lifeS, user: { id: email, email, name: email } },
    };
  }
}

class FakeBrowser {
  way = atOnce;
  server = new Server();
  stored = new Map<string, string>();
  channels: Channel[] = [];
  listeners: (() => void)[] = [];
  /** What the authenticator does when it is asked. */
  device: () => Promise<{ toJSON(): object }> = () => Promise.resolve({ toJSON: () => ({ id: 'a-passkey' }) });
}

/** What the globals of `useFakeBrowser` stand on. */
export const fake = new FakeBrowser();

class Channel {
  onmessage: (() => void) | undefined;
  constructor() {
    fake.channels.push(this);
  }
  postMessage(): void {
    for (const other of fake.channels)
      if (other !== this) void fake.way('a message', undefined).then(() => other.onmessage?.());
  }
}

/** One at a time, in order. */
function lock(): { request(name: string, options: object, work: () => Promise<unknown>): Promise<unknown> } {
  let last: Promise<unknown> = Promise.resolve();
  return { request: (_name, _options, work) => (last = last.then(work, work)) };
}

const replaced = [
  'document',
  'localStorage',
  'navigator',
  'BroadcastChannel',
  'addEventListener',
  'fetch',
  'PublicKeyCredential',
  'crypto',
] as const;
const realCrypto = globalThis.crypto;
const before = replaced.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const);
export const replace = (name: (typeof replaced)[number], value: unknown) =>
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });

/** An empty browser, for one spec or one run of a law. */
export function emptyBrowser(): void {
  Object.assign(fake, new FakeBrowser());
  replace('navigator', { locks: lock(), credentials: { create: () => fake.device(), get: () => fake.device() } });
  replace('crypto', realCrypto);
  replace('PublicKeyCredential', { parseCreationOptionsFromJSON: () => ({}), parseRequestOptionsFromJSON: () => ({}) });
}

/** Puts a browser, its server and its authenticator in the place of Node's globals, anew for each spec of the file. */
export function useFakeBrowser(): void {
  beforeAll(() => {
    replace('document', { addEventListener: (_type: string, listener: () => void) => fake.listeners.push(listener) });
    replace('addEventListener', () => undefined);
    replace('localStorage', {
      getItem: (key: string) => fake.stored.get(key) ?? null,
      setItem: (key: string, value: string) => fake.stored.set(key, value),
      removeItem: (key: string) => fake.stored.delete(key),
    });
    replace('BroadcastChannel', Channel);
    replace('fetch', async (url: string, init: RequestInit) => {
      const path = url.slice('/api'.length);
      const givenUp = new Promise<never>((_resolve, reject) =>
        init.signal?.addEventListener('abort', () => reject(init.signal?.reason as Error)),
      );
      await Promise.race([fake.way(`${path} to the server`, undefined), givenUp]);
      const body = init.body === undefined ? undefined : (JSON.parse(init.body as string) as { email: string });
      const { status, body: answered } = fake.server.answer(path, new Headers(init.headers), body);
      return fake.way(`the answer to ${path}`, new Response(answered && JSON.stringify(answered), { status }));
    });
  });
  afterAll(() => {
    for (const [name, descriptor] of before) {
      if (descriptor) Object.defineProperty(globalThis, name, descriptor);
      else Reflect.deleteProperty(globalThis, name);
    }
  });
  beforeEach(emptyBrowser);
}

/** A tab, and what its page was told. */
export function tab(): { tab: SessionTab; told: string[] } {
  const told: string[] = [];
  const onChange = (state: TabState) =>
    told.push(state.kind === 'in' ? `in as ${state.user.email}` : `out: ${state.reason}`);
  return { tab: new SessionTab({ onChange }), told };
}

/** Every tab wakes up. */
export const wake = () => fake.listeners.forEach((listener) => listener());
