import { boundedText } from '@atoll/waiting';

const maxAnswerBytes = 8 * 1024 * 1024;

/** Why there is no answer. The message repeats nothing that was sent or received. */
export class PrometheusFault extends Error {}

/** The query API of a Prometheus, or of what speaks like one (Thanos, Mimir, VictoriaMetrics). */
export class PrometheusClient {
  readonly #address: URL;
  readonly #headers: Readonly<Record<string, string>>;

  /** `http(s)://[user:password@]host[:port][/path]`. Throws for anything else, without repeating it. */
  constructor(
    baseUrl: string,
    private readonly deadlineMs: number,
  ) {
    const url = URL.parse(baseUrl);
    if (!url || !['http:', 'https:'].includes(url.protocol))
      throw new Error('The address of Prometheus is not an http or https URL.');
    this.#headers = url.username || url.password ? { authorization: basicAuthorization(url) } : {};
    // Fetch refuses an address with credentials, and repeats it in the error.
    url.username = url.password = url.hash = '';
    url.pathname = `${url.pathname.replace(/\/+$/, '')}/api/v1/query`;
    this.#address = url;
  }

  /**
   * Returns what it answers to an expression, evaluated at an instant in ms, as text. By POST, as the expression can be
   * longer than an address may be. Throws `PrometheusFault` alone.
   */
  async query(query: string, atMs: number): Promise<string> {
    const form = { query, time: (atMs / 1_000).toFixed(3), timeout: `${this.deadlineMs}ms` };
    return this.#send(new URLSearchParams(form)).catch((error: unknown) => {
      throw error instanceof PrometheusFault ? error : new PrometheusFault(this.#reason(error));
    });
  }

  async #send(form: URLSearchParams): Promise<string> {
    const signal = AbortSignal.timeout(this.deadlineMs);
    // A redirect would be followed by GET, without the form.
    const response = await fetch(this.#address, {
      method: 'POST',
      headers: this.#headers,
      body: form,
      signal,
      redirect: 'manual',
    });
    if (!response.ok) {
      await response.body?.cancel();
      throw new PrometheusFault(`it answered ${response.status}`);
    }
    return boundedText(response.body, maxAnswerBytes);
  }

  #reason(error: unknown): string {
    if (error instanceof RangeError) return `the answer is longer than ${maxAnswerBytes} bytes`;
    if (textOf(error, 'name') === 'TimeoutError') return `no answer within ${this.deadlineMs} ms`;
    const cause = typeof error === 'object' && error !== null && 'cause' in error ? error.cause : null;
    return textOf(cause, 'code') ?? textOf(error, 'name') ?? 'it failed';
  }
}

function textOf(value: unknown, name: 'code' | 'name'): string | null {
  const text =
    typeof value === 'object' && value !== null && name in value ? (value as Record<string, unknown>)[name] : null;
  return typeof text === 'string' ? text : null;
}

function basicAuthorization({ username, password }: URL): string {
  return `Basic ${Buffer.from(`${decoded(username)}:${decoded(password)}`).toString('base64')}`;
}

/** A `%` that encodes nothing stands for itself. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
