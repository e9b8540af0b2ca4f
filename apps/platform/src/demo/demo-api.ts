import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

/** A platform, and the operator's key to it. */
export interface DemoPlatform {
  url: string;
  adminKey: string;
}

const deadlineMs = 60_000;
const mostTries = 6;
const passing: ReadonlySet<number> = new Set([429, 503, 504]);

/** The API as a customer calls it: the demo is made by the same operations as everything else. */
export class DemoApi {
  private readonly url: string;

  constructor(private readonly platform: DemoPlatform) {
    this.url = platform.url.replace(/\/+$/, '');
  }

  /**
   * The body of a success. What passes by itself is tried again, as the same call. Throws what the platform said
   * otherwise.
   */
  async call<Body>(method: 'GET' | 'POST' | 'PUT', path: string, body?: object): Promise<Body> {
    const headers = {
      authorization: `Bearer ${this.platform.adminKey}`,
      ...(body && { 'content-type': 'application/json' }),
      ...(method === 'POST' && { 'idempotency-key': randomUUID() }),
    };
    for (let tries = 1; ; tries += 1) {
      const answer = await fetch(`${this.url}/api${path}`, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      if (answer.ok) return (text ? JSON.parse(text) : undefined) as Body;
      if (!passing.has(answer.status) || tries === mostTries)
        throw new Error(`${method} ${path} answered ${answer.status}: ${text.slice(0, 500)}`);
      await delay((Number(answer.headers.get('retry-after')) || 1) * 1_000);
    }
  }

  get<Body>(path: string): Promise<Body> {
    return this.call<Body>('GET', path);
  }

  post<Body>(path: string, body: object = {}): Promise<Body> {
    return this.call<Body>('POST', path, body);
  }

  /** Whether this platform has an operation: what it lacks is left out of the demo. */
  async has(path: string): Promise<boolean> {
    const { paths } = await this.get<{ paths: Record<string, unknown> }>('/openapi.json');
    return `/api${path}` in paths;
  }

  /** Reads again until it is as it should be. */
  async until<Body>(path: string, isAsItShould: (found: Body) => boolean): Promise<Body> {
    const endMs = Date.now() + deadlineMs;
    for (;;) {
      const found = await this.get<Body>(path);
      if (isAsItShould(found)) return found;
      if (Date.now() > endMs) throw new Error(`${path} is still ${JSON.stringify(found).slice(0, 500)}`);
      await delay(100);
    }
  }
}
