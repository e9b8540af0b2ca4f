import { browser } from './browser.js';
import { hasLoggedOut, isAboutLogOuts, logOuts, noteLogOut } from './log-outs.js';
import { endRefreshAttempt, refreshAttempt } from './refresh-attempt.js';

/** The user as `GET /user/profile` shows it; only what a tab needs is named. */
export interface SessionUser {
  readonly id: string;
  readonly email: string;
  readonly name: string;
}

/** Why a tab has no session. `other_user`: another user has logged in with this browser meanwhile. */
export type OutReason = 'none' | 'logged_out' | 'ended' | 'other_user';

export type TabState =
  | { readonly kind: 'in'; readonly user: SessionUser }
  | { readonly kind: 'out'; readonly reason: OutReason };

export interface SessionTabOptions {
  /** Called once for each change, and at the end of a session once, whatever brought it. */
  onChange(state: TabState): void;
  /** Where the API is: a path of this origin. `/api` unless given. */
  api?: string;
}

/** What a log-in comes to. */
export type LogInOutcome = { kind: 'in' } | SecondFactor | Refusal;

interface SecondFactor {
  kind: 'second_factor';
  ticket: string;
  methods: string[];
}

interface Refusal {
  kind: 'refused';
  response: Response;
  /** The JSON body of `response`; undefined if it has none. */
  body: unknown;
}

interface LoggedIn {
  access_token: string;
  expires_in: number;
  user: SessionUser;
}

interface Held {
  token: string;
  /** Epoch milliseconds. */
  expiresAtMs: number;
  user: SessionUser;
  /** The log-outs in this browser that there were when the session was taken. */
  logOuts: string | null;
}

/** Thrown by `fetch` where the tab has no session (any more): the page shows the log-in. */
export class NoSession extends Error {
  override readonly name = 'NoSession';
}

/**
 * Thrown by `start` and `fetch` if a refresh failed temporarily and the session may still be valid. `refusal` is the
 * server's response; it is left out if there was none.
 */
export class RefreshFailed extends Error {
  override readonly name = 'RefreshFailed';

  constructor(readonly refusal?: Pick<Refusal, 'response' | 'body'>) {
    super(`The session cannot be refreshed at the moment (${refusal?.response.status ?? 'no answer'}).`);
  }
}

/**
 * Thrown where the browser has no passkeys for this page, as for one of plain http on another host than localhost.
 * Nothing was asked of the server.
 */
export class NoPasskeys extends Error {
  override readonly name = 'NoPasskeys';
}

const channelName = 'atoll-session';
const lockName = 'atoll-refresh';
/** A tab that sleeps with the lock must not keep the others waiting. */
const lockPatienceMs = 5_000;
/** Less than the 10 s for which the server takes a cookie that was replaced by whatever attempt. */
const refreshPatienceMs = 8_000;
const logOutPatienceMs = 5_000;
/** A token is refreshed so long before it expires. */
const marginMs = 30_000;

/**
 * The session of one tab. The access token is in its memory alone; the cookie, which no script reads, is shared by all
 * tabs and gives each its own.
 *
 * - Tabs refresh one at a time, by a lock of the browser; one that cannot have it in 5 s goes on without, which the
 *   server allows for. Until a refresh is answered they all send the same id with it, by which the server answers it
 *   again, however long that takes.
 * - A log-out in one tab is told to the others by a message, and by a stamp in `localStorage` to those that sleep and
 *   lose messages: they look at it when they wake, and before each call. Tabs of another user stay in.
 * - A session that has ended elsewhere shows by one 401: the tab tells its page once, and makes no call of its own.
 */
export class SessionTab {
  readonly #api: string;
  readonly #onChange: (state: TabState) => void;
  readonly #channel = new BroadcastChannel(channelName);
  #held: Held | undefined;
  #refreshing: Promise<void> | undefined;

  constructor(options: SessionTabOptions) {
    this.#api = options.api ?? '/api';
    this.#onChange = (state) => options.onChange(state);
    this.#channel.onmessage = () => this.#lookForLogOut();
    browser.addEventListener('storage', ({ key }) => (isAboutLogOuts(key) ? this.#lookForLogOut() : undefined));
    browser.addEventListener('pageshow', () => this.#lookForLogOut());
    browser.document.addEventListener('visibilitychange', () => this.#lookForLogOut());
    browser.document.addEventListener('resume', () => this.#lookForLogOut());
  }

  get user(): SessionUser | undefined {
    return this.#held?.user;
  }

  /**
   * For a new tab: joins the browser's session, if there is one. Throws `RefreshFailed` if that cannot be determined
   * yet.
   */
  async start(): Promise<void> {
    await this.#refresh().catch((error: unknown) => {
      if (!(error instanceof NoSession)) throw error;
      this.#onChange({ kind: 'out', reason: 'none' });
    });
  }

  logIn(email: string, password: string): Promise<LogInOutcome> {
    return this.#enter('/user/login', { email, password });
  }

  /** The second step: the ticket of the first, and a code. */
  logInWithCode(ticket: string, code: string): Promise<LogInOutcome> {
    return this.#enter('/user/login/second-factor', { ticket, code });
  }

  /** Throws `NoPasskeys`, and the `DOMException` by which the browser says that it has no answer of a device. */
  async logInWithPasskey(): Promise<LogInOutcome> {
    const { PublicKeyCredential, credentials } = passkeys();
    const asked = await this.#post('/user/login/passkey/begin', {});
    if (!asked.ok) return { kind: 'refused', response: asked, body: await bodyOf(asked) };
    const begun = (await asked.json()) as { challenge_id: string; options: string };
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(begun.options));
    const credential = JSON.stringify((await credentials.get({ publicKey })).toJSON());
    return this.#enter('/user/login/passkey/finish', { challenge_id: begun.challenge_id, credential });
  }

  /**
   * Adds a passkey of this device to the user who is logged in. Gives back the response of the last call, which is the
   * first where that is refused. Throws as `logInWithPasskey` does.
   */
  async addPasskey(name: string): Promise<Response> {
    const { PublicKeyCredential, credentials } = passkeys();
    const send = (path: string, body: object) =>
      this.fetch(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
    const asked = await send('/user/passkeys/begin', { name });
    if (!asked.ok) return asked;
    const begun = (await asked.json()) as { challenge_id: string; options: string };
    const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(JSON.parse(begun.options));
    const credential = JSON.stringify((await credentials.create({ publicKey })).toJSON());
    return send('/user/passkeys/finish', { challenge_id: begun.challenge_id, credential, name });
  }

  /**
   * Ends the session of this tab's user in every tab; that of another user, who has logged in with this browser since,
   * goes on. This tab is out in any case, after 5 s at most; throws where the session may go on.
   */
  async logOut(): Promise<void> {
    const userId = this.#held?.user.id;
    const signal = AbortSignal.timeout(logOutPatienceMs);
    try {
      const { status } = await this.#endSession(signal);
      // A proxy may answer 200 in the place of the platform.
      if (status !== 204) throw new Error(`The log-out failed (${status}); the session may still be open.`);
    } catch (error) {
      // The refresh has found none of this user.
      if (!(error instanceof NoSession)) throw error;
    } finally {
      noteLogOut(userId);
      this.#channel.postMessage('logged out');
      this.#leave('logged_out');
    }
  }

  /**
   * A token that is worth nothing any more is refused beside the cookie of another session, which may be this user's
   * too: a refresh gives the tab a token of that one. Throws what the refresh throws.
   */
  async #endSession(signal: AbortSignal): Promise<Response> {
    const response = await this.#postLogOut(signal);
    if (response.status !== 401 || !this.#held) return response;
    const { promise: late, reject } = Promise.withResolvers<never>();
    signal.addEventListener('abort', () => reject(signal.reason as Error));
    await Promise.race([this.#refresh(), late]);
    return this.#postLogOut(signal);
  }

  #postLogOut(signal: AbortSignal): Promise<Response> {
    const headers = this.#held && { authorization: `Bearer ${this.#held.token}` };
    return this.#post('/user/logout', undefined, { ...(headers && { headers }), signal });
  }

  /**
   * A call to the API with the tab's access token, refreshed where it is about to expire. Throws `NoSession` and
   * `RefreshFailed`.
   */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    this.#lookForLogOut();
    if (!this.#held) throw new NoSession();
    if (this.#held.expiresAtMs - marginMs < Date.now()) await this.#refresh();
    const token = this.#held?.token;
    if (token === undefined) throw new NoSession();
    const headers = new Headers(init.headers);
    headers.set('authorization', `Bearer ${token}`);
    const response = await fetch(this.#api + path, { ...init, headers });
    if (response.status !== 401) return response;
    // Of several calls that were under way the first one ends the session, and the others find it ended.
    if (this.#held?.token === token) this.#leave('ended');
    throw new NoSession();
  }

  async #enter(path: string, body: object): Promise<LogInOutcome> {
    const response = await this.#post(path, body);
    if (response.ok) {
      this.#take((await response.json()) as LoggedIn);
      return { kind: 'in' };
    }
    const answer = await bodyOf(response);
    const {
      code,
      ticket = '',
      methods = [],
    } = (answer ?? {}) as { code?: string; ticket?: string; methods?: string[] };
    if (code === 'second_factor_required') return { kind: 'second_factor', ticket, methods };
    return { kind: 'refused', response, body: answer };
  }

  /** One refresh at a time in this tab, and one tab at a time in this browser. */
  #refresh(): Promise<void> {
    this.#refreshing ??= this.#inTurn(() => this.#refreshNow()).finally(() => (this.#refreshing = undefined));
    return this.#refreshing;
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    const { locks } = browser.navigator;
    if (!locks) return work();
    let isMine = false;
    const signal = AbortSignal.timeout(lockPatienceMs);
    try {
      return await locks.request(lockName, { signal }, () => {
        isMine = true;
        return work();
      });
    } catch (error) {
      if (isMine || !signal.aborted) throw error;
      return work();
    }
  }

  async #refreshNow(): Promise<void> {
    const before = this.#held;
    const known = logOuts();
    if (before && hasLoggedOut(before.user.id, before.logOuts)) {
      this.#leave('logged_out');
      throw new NoSession();
    }
    const attempt = refreshAttempt();
    const sent = { headers: { 'refresh-attempt': attempt }, signal: AbortSignal.timeout(refreshPatienceMs) };
    const response = await this.#post('/user/refresh', undefined, sent).catch(() => {
      throw new RefreshFailed();
    });
    const body = await bodyOf(response);
    // The cookie has been replaced, or removed. What is no JSON may be the answer of a proxy.
    if ((response.ok && body !== undefined) || response.status === 401) endRefreshAttempt(attempt);
    if (this.#held !== before) {
      // Left or logged in anew meanwhile: the answer is about a session that is no longer this tab's.
      if (this.#held) return;
      throw new NoSession();
    }
    if (response.status === 401) {
      this.#leave('ended');
      throw new NoSession();
    }
    if (!response.ok || body === undefined) throw new RefreshFailed({ response, body });
    const answer = body as LoggedIn;
    if (hasLoggedOut(answer.user.id, known)) {
      this.#leave('logged_out');
      throw new NoSession();
    }
    if (before && before.user.id !== answer.user.id) {
      this.#leave('other_user');
      throw new NoSession();
    }
    this.#take(answer, known);
  }

  #take({ access_token, expires_in, user }: LoggedIn, known = logOuts()): void {
    const isNew = this.#held?.user.id !== user.id;
    this.#held = { token: access_token, expiresAtMs: Date.now() + expires_in * 1000, user, logOuts: known };
    if (isNew) this.#onChange({ kind: 'in', user });
  }

  /** Nothing where the tab is out already: a page is told once. */
  #leave(reason: OutReason): void {
    if (!this.#held) return;
    this.#held = undefined;
    this.#onChange({ kind: 'out', reason });
  }

  #lookForLogOut(): void {
    if (this.#held && hasLoggedOut(this.#held.user.id, this.#held.logOuts)) this.#leave('logged_out');
  }

  #post(
    path: string,
    body: object | undefined,
    { headers = {}, signal }: { headers?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<Response> {
    return fetch(this.#api + path, {
      method: 'POST',
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  }
}

function passkeys() {
  const {
    PublicKeyCredential,
    navigator: { credentials },
  } = browser;
  if (!PublicKeyCredential || !credentials) throw new NoPasskeys();
  return { PublicKeyCredential, credentials };
}

function bodyOf(response: Response): Promise<unknown> {
  return response.json().catch(() => undefined);
}
