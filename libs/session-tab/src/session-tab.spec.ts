import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { NoPasskeys, NoSession, SessionTab, type TabState } from './session-tab.js';

type Answer = { status: number; body: object };
/** How long a message is under way: fast-check decides in which order they arrive. */
type Way = <T>(what: string, value: T) => Promise<T>;

const atOnce: Way = (_what, value) => Promise.resolve(value);
let way: Way;

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

  answer(path: string, authorization: string | null, body: { email?: string } | undefined): Answer {
    this.calls.push(path);
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
      return this.cookie !== undefined && this.users.has(this.cookie) ? this.tokenOf(this.cookie) : { status: 401, body: {} };
    }
    if (path === '/user/logout') {
      this.end();
      return { status: 200, body: {} };
    }
    return { status: this.users.has(authorization?.split(' ')[1] ?? '') ? 200 : 401, body: {} };
  }

  end(): void {
    this.users.delete(this.cookie ?? '');
  }

  private tokenOf(session: string): Answer {
    const email = this.users.get(session) ?? '';
    return { status: 200, body: { access_token: session, expires_in: this.lifeS, user: { id: email, email, name: email } } };
  }
}

let server: Server;
let stored: Map<string, string>;
let channels: Channel[];
let listeners: (() => void)[];
/** What the authenticator does when it is asked. */
let device: () => Promise<{ toJSON(): object }>;

class Channel {
  onmessage: (() => void) | undefined;
  constructor() {
    channels.push(this);
  }
  postMessage(): void {
    for (const other of channels) if (other !== this) void way('a message', undefined).then(() => other.onmessage?.());
  }
}

/** One at a time, in order. */
function lock(): { request(name: string, options: object, work: () => Promise<unknown>): Promise<unknown> } {
  let last: Promise<unknown> = Promise.resolve();
  return { request: (_name, _options, work) => (last = last.then(work, work)) };
}

const replaced = ['document', 'localStorage', 'navigator', 'BroadcastChannel', 'addEventListener', 'fetch', 'PublicKeyCredential'] as const;
const before = replaced.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const);
const replace = (name: (typeof replaced)[number], value: unknown) =>
  Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });

beforeAll(() => {
  replace('document', { addEventListener: (_type: string, listener: () => void) => listeners.push(listener) });
  replace('addEventListener', () => undefined);
  replace('localStorage', {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
  });
  replace('BroadcastChannel', Channel);
  replace('fetch', async (url: string, init: RequestInit) => {
    const path = url.slice('/api'.length);
    await way(`${path} to the server`, undefined);
    const body = init.body === undefined ? undefined : (JSON.parse(init.body as string) as { email: string });
    const { status, body: answered } = server.answer(path, new Headers(init.headers).get('authorization'), body);
    return way(`the answer to ${path}`, new Response(JSON.stringify(answered), { status }));
  });
});
afterAll(() => {
  for (const [name, descriptor] of before) {
    if (descriptor) Object.defineProperty(globalThis, name, descriptor);
    else Reflect.deleteProperty(globalThis, name);
  }
});
const emptyBrowser = () => {
  [way, server, stored, channels, listeners] = [atOnce, new Server(), new Map(), [], []];
  replace('navigator', { locks: lock(), credentials: { create: () => device(), get: () => device() } });
  replace('PublicKeyCredential', { parseCreationOptionsFromJSON: () => ({}), parseRequestOptionsFromJSON: () => ({}) });
  device = () => Promise.resolve({ toJSON: () => ({ id: 'a-passkey' }) });
};
beforeEach(emptyBrowser);

/** A tab, and what its page was told. */
function tab(): { tab: SessionTab; told: string[] } {
  const told: string[] = [];
  const onChange = (state: TabState) => told.push(state.kind === 'in' ? `in as ${state.user.email}` : `out: ${state.reason}`);
  return { tab: new SessionTab({ onChange }), told };
}
/** Every tab wakes up. */
const wake = () => listeners.forEach((listener) => listener());
const unlessOut = (error: unknown) => {
  if (!(error instanceof NoSession)) throw error;
};

describe('the session of a tab', () => {
  it('is that of its browser: a new tab takes part, or is told that there is none', async () => {
    const [first, second, third] = [tab(), tab(), tab()];
    await first.tab.start();
    await first.tab.logIn('ada', 'secret');
    await second.tab.start();
    expect([first.told, second.told]).toEqual([['out: none', 'in as ada'], ['in as ada']]);
    expect((await second.tab.fetch('/pods')).status).toBe(200);
    server.end();
    await third.tab.start();
    expect(third.told).toEqual(['out: none']);
  });

  it('ends with one word to its page where it was ended elsewhere, however many calls are under way', async () => {
    const { tab: only, told } = tab();
    await only.logIn('ada', 'secret');
    server.end();
    await Promise.all([1, 2, 3].map(() => only.fetch('/pods').catch(unlessOut)));
    await expect(only.fetch('/pods')).rejects.toThrow(NoSession);
    expect(told).toEqual(['in as ada', 'out: ended']);
  });

  it('goes on after a refresh that failed for the moment', async () => {
    const { tab: only, told } = tab();
    await only.logIn('ada', 'secret');
    server.refuses = 503;
    await expect(only.fetch('/pods')).rejects.toThrow('The session cannot be refreshed at the moment (503).');
    server.refuses = undefined;
    expect((await only.fetch('/pods')).status).toBe(200);
    expect(told).toEqual(['in as ada']);
  });

  it('begins with no log-in that is refused; the page gets all that the server said', async () => {
    const { tab: only, told } = tab();
    const body = { code: 'invalid_input', detail: 'email must be an e-mail address.', errors: [{ path: 'email' }], request_id: 'r' };
    for (const path of ['/user/login', '/user/login/second-factor', '/user/login/passkey/begin'])
      server.answers.set(path, { status: 400, body });
    const outcomes = [await only.logIn('ada', 'x'), await only.logInWithCode('t', '1'), await only.logInWithPasskey()];
    for (const outcome of outcomes) expect(outcome).toMatchObject({ kind: 'refused', response: { status: 400 }, body });
    expect(told).toEqual([]);
  });

  it('is not the next user’s: a tab of the former one leaves', async () => {
    const [first, second] = [tab(), tab()];
    await first.tab.logIn('ada', 'secret');
    await second.tab.logIn('bob', 'secret');
    await expect(first.tab.fetch('/pods')).rejects.toThrow(NoSession);
    expect([first.told, second.told]).toEqual([['in as ada', 'out: other_user'], ['in as bob']]);
  });

  it.each([
    ['refreshed', '/user/refresh', 200],
    ['ended', '/pods', 'no session'],
  ] as const)('is that of a log-in which comes while the former session is %s', async (_what, path, outcome) => {
    const { tab: only, told } = tab();
    await only.logIn('ada', 'secret');
    if (path === '/pods') server.lifeS = 3600;
    await only.fetch('/pods');
    const [held, arrive] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    way = async (what, value) => {
      if (what !== `the answer to ${path}`) return value;
      held.resolve();
      await arrive.promise;
      return value;
    };
    if (path === '/pods') server.end();
    const call = only.fetch('/pods').then(
      ({ status }) => status,
      (error: unknown) => (error instanceof NoSession ? 'no session' : error),
    );
    await held.promise;
    await only.logIn('bob', 'secret');
    arrive.resolve();
    expect([await call, told]).toEqual([outcome, ['in as ada', 'in as bob']]);
  });

  it('refreshes once for many calls of a tab', async () => {
    const { tab: only } = tab();
    await only.logIn('ada', 'secret');
    await Promise.all([1, 2, 3].map(() => only.fetch('/pods')));
    expect(server.calls.filter((path) => path === '/user/refresh')).toHaveLength(1);
  });

  it('ends in every tab with a log-out in one, whatever is under way; no page is told twice, and none comes back', async () => {
    const ask = fc.constantFrom('calls', 'wakes', 'opens', 'logs out');
    const asked = fc.array(fc.tuple(ask, fc.nat({ max: 2 })), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(asked, fc.nat({ max: 2 }), fc.scheduler(), async (steps, leaver, scheduler) => {
        emptyBrowser();
        const tabs = [tab(), tab(), tab()];
        await tabs[0]?.tab.logIn('ada', 'secret');
        for (const { tab: other } of tabs.slice(1)) await other.start();
        way = (what, value) => scheduler.schedule(Promise.resolve(value), what);
        const under = steps.map(async ([what, index]) => {
          await way(what, undefined);
          const { tab: one } = tabs[index] ?? tab();
          if (what === 'wakes') wake();
          else if (what === 'calls') await one.fetch('/pods').catch(unlessOut);
          else if (what === 'logs out') await one.logOut();
          else {
            const opened = tab();
            tabs.push(opened);
            await opened.tab.start();
          }
        });
        const last = way('the log-out', undefined).then(() => tabs[leaver]?.tab.logOut());
        await scheduler.waitFor(Promise.all([...under, last]));
        await scheduler.waitIdle();
        const shown = tabs.map(({ told }) => told.at(-1)?.startsWith('in'));
        expect(shown).toEqual(tabs.map(() => false));
        expect(tabs.map(({ tab: one }) => one.user)).toEqual(tabs.map(() => undefined));
        for (const { told } of tabs) {
          const kinds = told.map((line) => line.split(' ')[0]);
          expect(kinds.filter((kind, at) => kind === kinds[at - 1])).toEqual([]);
          expect(kinds.filter((kind) => kind === 'in').length).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('a passkey', () => {
  const begin = '/user/passkeys/begin';
  const finish = '/user/passkeys/finish';
  async function add(): Promise<Response> {
    const { tab: only } = tab();
    await only.logIn('ada', 'secret');
    return only.addPasskey('Laptop');
  }
  beforeEach(() => {
    server.lifeS = 3600;
    server.answers.set(begin, { status: 200, body: { challenge_id: 'c', options: '{}' } });
    server.answers.set('/user/login/passkey/begin', { status: 200, body: { challenge_id: 'c', options: '{}' } });
  });

  it('is added by the answer of the device', async () => {
    expect((await add()).status).toBe(200);
    expect(server.calls).toEqual(['/user/login', begin, finish]);
    expect(server.bodies.at(-1)).toEqual({ challenge_id: 'c', credential: '{"id":"a-passkey"}', name: 'Laptop' });
  });

  it.each([
    [begin, ['/user/login', begin]],
    [finish, ['/user/login', begin, finish]],
  ])('that is refused at %s is not added, and the page gets the refusal', async (path, calls) => {
    server.answers.set(path, { status: 403, body: { code: 'forbidden' } });
    const response = await add();
    expect([response.status, await response.json(), server.calls]).toEqual([403, { code: 'forbidden' }, calls]);
  });

  it('that the device does not give ends with what the browser says, and no call', async () => {
    device = () => Promise.reject(new DOMException('cancelled', 'NotAllowedError'));
    await expect(add()).rejects.toMatchObject({ name: 'NotAllowedError' });
    await expect(tab().tab.logInWithPasskey()).rejects.toMatchObject({ name: 'NotAllowedError' });
    expect(server.calls).toEqual(['/user/login', begin, '/user/login/passkey/begin']);
  });

  it.each(['navigator', 'PublicKeyCredential'] as const)('needs a browser that has %s: the server is asked for nothing', async (part) => {
    replace(part, part === 'navigator' ? {} : undefined);
    await expect(add()).rejects.toThrow(NoPasskeys);
    await expect(tab().tab.logInWithPasskey()).rejects.toThrow(NoPasskeys);
    expect(server.calls).toEqual(['/user/login']);
  });
});
