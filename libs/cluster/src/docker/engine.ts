import type { IncomingHttpHeaders } from 'node:http';
import { addAbortSignal, type Duplex, type Readable } from 'node:stream';
import { after, boundedText, FairSemaphore, untilAborted } from '@atoll/waiting';
import { ClusterError } from '../cluster-error.js';
import { EngineConnection, type EngineAddress, type Message, type Reply } from './engine-connection.js';
import { connectionErrorOf, EngineRefusal } from './engine-errors.js';

export interface EngineCall {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  /** Without the version of the API: `/containers/json`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | object>>;
  /** JSON, or a tar archive. */
  readonly body?: object | Buffer;
  readonly signal: AbortSignal;
  /** For the whole answer of a call; for its head where a stream follows. */
  readonly deadlineMs?: number;
  /** `libpod`: Podman's own API, for what its Docker API leaves out. */
  readonly api?: 'docker' | 'libpod';
  /**
   * The pod for whose user it is made. Such calls take turns by pod, apart from those of the platform: users may ask
   * for commands and connections without a pause, in any number of pods.
   */
  readonly forPod?: string;
  /** It waits for no other: its caller bounds how many are made at once. */
  readonly isBounded?: boolean;
}

/** Podman answers in the form of the Docker Engine API, with differences that its callers have to know. */
export type EngineKind = 'docker' | 'podman';

export interface Greeting {
  readonly kind: EngineKind;
  /** `1.41`: of the Docker Engine API. */
  readonly apiVersion: string;
  /** Of the engine; null where it does not say it. */
  readonly version: string | null;
}

/** The newest version of the API whose answers are known here. */
const newestApi = 1.47;
const libpodPrefix = '/v4.0.0/libpod';
const defaultDeadlineMs = 15_000;
/** The longest answer is the list of all containers, of some kB each. */
const maxAnswerBytes = 64 * 1024 * 1024;
const callsAtOnce = 16;
const userCallsAtOnce = 8;
const streamsAtOnce = 1_024;
const logsAtOnce = 1_024;

/** `stream`: what the platform needs, and ends by itself. `log`: that of a pod, which lasts as long. */
type StreamKind = 'stream' | 'log';
/** `free`: a call that waits for no other. */
type CallKind = 'call' | 'userCall' | 'free';
type ExchangeKind = StreamKind | CallKind | 'upgrade';

/**
 * The HTTP API of a container engine, Docker's or Podman's. Calls of the platform, calls for users of pods, streams
 * (events, pulls, stops) and logs are bounded apart, so that no number of one kind delays another. Upgrades, resizes
 * and signals are bounded by who asks for them: `Sessions` and `Shells`; whether it answers is asked beside all of
 * them. Throws `EngineRefusal` for an answer that is an error, and `ClusterError` where there is no answer in time.
 */
export class Engine {
  readonly #connection: EngineConnection;
  readonly #permits: Record<ExchangeKind, FairSemaphore> = {
    call: new FairSemaphore({ permits: callsAtOnce }),
    userCall: new FairSemaphore({ permits: userCallsAtOnce }),
    free: new FairSemaphore({}),
    stream: new FairSemaphore({ permits: streamsAtOnce }),
    log: new FairSemaphore({ permits: logsAtOnce }),
    upgrade: new FairSemaphore({}),
  };
  #greeting: Promise<Greeting> | undefined;
  /** By `performance.now()`: when it answered last. */
  #answeredAtMs = -Infinity;
  #asking: Promise<unknown> | undefined;

  constructor(address: EngineAddress) {
    this.#connection = new EngineConnection(address);
  }

  /** The response as JSON; null if it is empty, or if nothing had to change (304). */
  async json<T>(call: EngineCall): Promise<T> {
    return within(call, async (signal) => {
      const reply = await this.#send(call, signal, kindOf(call));
      const body = await boundedText(reply.response, maxAnswerBytes);
      return (body.trim() === '' ? null : JSON.parse(body)) as T;
    });
  }

  /** A header of the answer; null where it is not there. */
  async header(call: EngineCall, name: string): Promise<string | null> {
    return within(call, async (signal) => {
      const { response } = await this.#send(call, signal, kindOf(call));
      response.resume();
      const value = response.headers[name];
      return typeof value === 'string' ? value : null;
    });
  }

  /** The body of an answer while it comes. Ends with an error when the signal is aborted or the connection breaks. */
  async stream(call: EngineCall, kind: StreamKind = 'stream'): Promise<Readable> {
    return within(call, async (signal) => {
      const { response } = await this.#send(call, signal, kind);
      return addAbortSignal(call.signal, response);
    });
  }

  /**
   * A log while it is written. Resolves once it is its turn to ask for it, with the body that opens when its run writes
   * for the first time: where it has written nothing, Podman sends no head. The deadline is that of the turn.
   */
  async follow(call: EngineCall): Promise<{ readonly opened: Promise<Readable> }> {
    const turn = Promise.withResolvers<void>();
    const opened = within({ ...call, deadlineMs: Infinity }, async (signal) => {
      const { response } = await this.#send(call, signal, 'log', {}, turn.resolve);
      return addAbortSignal(call.signal, response);
    });
    opened.catch(turn.reject);
    await within(call, () => turn.promise);
    return { opened };
  }

  /**
   * Throws `unreachable` where the engine answers nothing. It is asked if it has answered to nobody since `sinceMs`, by
   * `performance.now()`, and once for all who want to know, who give it the same time.
   */
  async requireAnswer(sinceMs: number, deadlineMs: number, signal: AbortSignal): Promise<void> {
    if (this.#answeredAtMs >= sinceMs) return;
    this.#asking ??= this.#ping(deadlineMs).finally(() => (this.#asking = undefined));
    await untilAborted(signal, this.#asking);
  }

  /**
   * Turns the connection into a stream of bytes in both directions, as attach and exec do. Not bound to the signal once
   * it is open.
   */
  async upgrade(call: EngineCall): Promise<Duplex> {
    return within(call, async (signal) => {
      const { socket, response } = await this.#send(call, signal, 'upgrade', { Connection: 'Upgrade', Upgrade: 'tcp' });
      if (socket) return socket;
      response.destroy();
      throw new ClusterError('unreachable', 'The container engine did not open a stream.');
    });
  }

  async kind(signal: AbortSignal): Promise<EngineKind> {
    return (await within({ signal }, () => this.greeting())).kind;
  }

  /**
   * Asked once, and again after a failure: an engine of another kind or an older version needs a new driver. Shared, so
   * it ends with no caller's signal. From the head of `/_ping`, which a busy Podman answers at once; its `/version`
   * takes seconds.
   */
  greeting(): Promise<Greeting> {
    this.#greeting ??= this.#ping();
    return this.#greeting.catch((error: unknown) => {
      this.#greeting = undefined;
      throw error;
    });
  }

  #ping(deadlineMs = defaultDeadlineMs): Promise<Greeting> {
    const call: EngineCall = { method: 'GET', path: '/_ping', signal: new AbortController().signal, deadlineMs };
    return within(call, async (signal) => {
      const { response } = await this.#exchange(messageOf(call, '', signal), 'free', { signal });
      response.resume();
      return greetingIn(response.headers);
    });
  }

  close(): void {
    this.#connection.close();
  }

  async #send(
    call: EngineCall,
    signal: AbortSignal,
    kind: ExchangeKind,
    headers = {},
    onTurn?: () => void,
  ): Promise<Reply> {
    const message = messageOf(call, await this.#prefix(call), signal, headers);
    return this.#exchange(message, kind, { signal, key: call.forPod }, onTurn);
  }

  async #exchange(
    message: Message,
    kind: ExchangeKind,
    turn: { signal: AbortSignal; key?: string },
    onTurn?: () => void,
  ): Promise<Reply> {
    const release = await this.#permits[kind].acquire(turn);
    try {
      onTurn?.();
      const reply = await this.#connection.exchange(message, isCall(kind) ? 'call' : 'stream');
      this.#answeredAtMs = performance.now();
      (reply.socket ?? reply.response).once('close', release);
      const status = reply.response.statusCode ?? 0;
      if (status >= 400) throw new EngineRefusal(status, messageIn(await boundedText(reply.response, maxAnswerBytes)));
      return reply;
    } catch (error) {
      release();
      throw error;
    }
  }

  async #prefix({ api }: EngineCall): Promise<string> {
    if (api === 'libpod') return libpodPrefix;
    const { apiVersion } = await this.greeting();
    return `/v${Math.min(newestApi, Number(apiVersion)).toFixed(2)}`;
  }
}

function kindOf({ forPod, isBounded }: EngineCall): CallKind {
  if (isBounded) return 'free';
  return forPod === undefined ? 'call' : 'userCall';
}

function isCall(kind: ExchangeKind): kind is CallKind {
  return kind === 'call' || kind === 'userCall' || kind === 'free';
}

/**
 * Docker: `Server: Docker/27.3.1 (linux)`. Podman: `Server: Libpod/4.3.1 (linux)` and `Libpod-Api-Version`. Both:
 * `Api-Version`.
 */
function greetingIn(headers: IncomingHttpHeaders): Greeting {
  const apiVersion = headers['api-version'];
  const server = String(headers['server'] ?? '');
  if (typeof apiVersion !== 'string') throw new Error('The response to /_ping has no Api-Version header.');
  const kind = 'libpod-api-version' in headers || server.startsWith('Libpod/') ? 'podman' : 'docker';
  const [, version = null] = /^\w+\/(\S+)/.exec(server) ?? [];
  return { kind, apiVersion, version };
}

function messageOf(
  { method, path, query = {}, body }: EngineCall,
  prefix: string,
  signal: AbortSignal,
  more = {},
): Message {
  const bytes = body === undefined || Buffer.isBuffer(body) ? (body ?? null) : Buffer.from(JSON.stringify(body));
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    parameters.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value));
  const headers: Record<string, string | number> = { ...more };
  if (bytes) headers['Content-Type'] = Buffer.isBuffer(body) ? 'application/x-tar' : 'application/json';
  if (method !== 'GET' && method !== 'HEAD') headers['Content-Length'] = bytes?.length ?? 0;
  return { method, path: `${prefix}${path}?${parameters.toString()}`, headers, body: bytes, signal };
}

/** Docker: `{message}`. Podman: `{cause, message, response}`. */
function messageIn(body: string): string {
  try {
    const { message = '', cause = '' } = JSON.parse(body) as { message?: string; cause?: string };
    return cause && !message.includes(cause) ? `${message}: ${cause}` : message;
  } catch {
    return body;
  }
}

/**
 * Runs an action that ends when the call's signal is aborted or its deadline has passed, and makes a `ClusterError` of
 * any failure but a refusal.
 */
async function within<T>(
  { signal, deadlineMs = defaultDeadlineMs }: Pick<EngineCall, 'signal' | 'deadlineMs'>,
  action: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const scope = new AbortController();
  const abort = (): void =>
    scope.abort(new ClusterError('timeout', 'The request was cancelled before the container engine responded.'));
  const late = (): void =>
    scope.abort(new ClusterError('unreachable', `The container engine did not answer within ${deadlineMs / 1000} s.`));
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  const timer = after(deadlineMs, late);
  try {
    return await untilAborted(scope.signal, action(scope.signal));
  } catch (error) {
    if (scope.signal.aborted) throw scope.signal.reason;
    if (error instanceof EngineRefusal || error instanceof ClusterError) throw error;
    throw connectionErrorOf(error);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}
