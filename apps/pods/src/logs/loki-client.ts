import { AppError, messageOf } from '@atoll/errors';
import { boundedText } from '@atoll/waiting';

type Labels = Readonly<Record<string, string>>;

/** Nanoseconds as text, and what is kept beside the line. */
export type PushedValue = readonly [ns: string, line: string, beside: Labels];
export type ReadValue = readonly [ns: string, line: string, beside?: { readonly structuredMetadata?: Labels }];

export interface LokiStream<Value> {
  readonly labels: Labels;
  readonly values: readonly Value[];
}

export interface LokiRange {
  /** LogQL. */
  readonly query: string;
  /** Nanoseconds since 1970, the start included, the end not. */
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly limit: number;
  readonly direction: 'forward' | 'backward';
}

/** An answer of Loki has at most 4 MiB between its parts, of which JSON makes up to six times as much. */
const maxAnswerBytes = 32 * 1024 * 1024;

/** Loki's default of `block_ingestion_status_code`. */
const blockedStatus = 260;

interface Answer {
  readonly ok: boolean;
  readonly status: number;
  /** As Loki writes its errors. */
  readonly isPlainText: boolean;
  readonly text: string;
}

interface LokiAnswer {
  readonly data: {
    readonly result: readonly { readonly stream: Record<string, string>; readonly values: ReadValue[] }[];
  };
}

/**
 * The part of Loki’s HTTP API that stores and reads lines.
 * https://grafana.com/docs/loki/latest/reference/loki-http-api/
 */
export class LokiClient {
  readonly #base: string;
  readonly #authorization: string | undefined;

  /**
   * `url`: `http(s)://[user:password@]host[:port][/path]`. `onAnswer` is called for each answer, of whatever status.
   */
  constructor(
    url: string,
    private readonly pushMs: number,
    private readonly onAnswer: () => void,
  ) {
    const { protocol, host, pathname, username, password } = new URL(url);
    this.#base = `${protocol}//${host}${pathname.replace(/\/$/, '')}/loki/api/v1`;
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    this.#authorization = username === '' ? undefined : `Basic ${Buffer.from(credentials).toString('base64')}`;
  }

  /**
   * Resolves with Loki’s sentence about lines that it refused for good, undefined where it took all. Throws AppError
   * `unavailable`.
   */
  async push(tenant: string, streams: readonly LokiStream<PushedValue>[]): Promise<string | undefined> {
    const body = JSON.stringify({ streams: streams.map(({ labels, values }) => ({ stream: labels, values })) });
    const answer = await this.#fetch(`${this.#base}/push`, tenant, AbortSignal.timeout(this.pushMs), {
      method: 'POST',
      body,
    });
    // Nothing else that may be at this URL by mistake, and no proxy, answers a push as Loki does.
    if (answer.status === 204) return undefined;
    const reason = answer.text.slice(0, 500);
    // Of such a push Loki has kept the lines that were right; of a tenant whose lines the operator has blocked, none.
    if ((answer.status === 400 && answer.isPlainText) || answer.status === blockedStatus) return reason;
    if (answer.ok)
      throw unavailable(
        new Error(`LOKI_URL is not that of a Loki: it answered ${answer.status}, not 204: ${reason.slice(0, 100)}`),
      );
    throw unavailable(new Error(`Loki answered ${answer.status}: ${reason}`));
  }

  /** Throws AppError `unavailable`, also where the signal ends it. */
  async range(
    tenant: string,
    { query, startNs, endNs, limit, direction }: LokiRange,
    signal: AbortSignal,
  ): Promise<LokiStream<ReadValue>[]> {
    const asked = new URLSearchParams({
      query,
      start: String(startNs),
      end: String(endNs),
      limit: String(limit),
      direction,
    });
    const answer = await this.#fetch(`${this.#base}/query_range?${asked.toString()}`, tenant, signal);
    if (!answer.ok) throw unavailable(new Error(`Loki answered ${answer.status}: ${answer.text.slice(0, 500)}`));
    try {
      const { data } = JSON.parse(answer.text) as LokiAnswer;
      return data.result.map(({ stream, values }) => ({ labels: stream, values }));
    } catch (error) {
      throw unavailable(error);
    }
  }

  /** The whole answer: it may stop in the midst of its body. */
  async #fetch(url: string, tenant: string, signal: AbortSignal, init: RequestInit = {}): Promise<Answer> {
    try {
      const answer = await fetch(url, {
        ...init,
        redirect: 'error',
        signal,
        headers: {
          'Content-Type': 'application/json',
          'X-Scope-OrgID': tenant,
          // Else a stream is answered once for each value of what stands beside its lines.
          'X-Loki-Response-Encoding-Flags': 'categorize-labels',
          ...(this.#authorization && { Authorization: this.#authorization }),
        },
      });
      const text = await boundedText(answer.body, maxAnswerBytes);
      this.onAnswer();
      const isPlainText = answer.headers.get('Content-Type')?.startsWith('text/plain') === true;
      return { ok: answer.ok, status: answer.status, isPlainText, text };
    } catch (error) {
      throw unavailable(new Error(`Loki did not answer: ${reasonOf(error)}`, { cause: error }));
    }
  }
}

/** `fetch` says why only in the cause of what it throws: an AggregateError without a message for several addresses. */
function reasonOf(error: unknown): string {
  const { cause } = error as { cause?: { message?: string; code?: string } };
  return cause?.message || cause?.code || messageOf(error);
}

/** For callers; the cause is for the log. */
export function unavailable(cause: unknown): AppError {
  return new AppError(
    'unavailable',
    'The log store is not responding. Try again, or ask for a shorter time range.',
    {},
    { cause },
  );
}
