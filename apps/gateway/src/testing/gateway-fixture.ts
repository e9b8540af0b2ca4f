import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { InjectOptions } from 'fastify';
import { InProcessBus, RpcModule } from '@atoll/rpc';
import { createLogger, createMetrics } from '@atoll/service';
import { recordError, timeoutFactor } from '@atoll/testing';
import { createGateway } from '../create-gateway.js';
import type { Problem } from '../errors/problem.js';
import type { GatewayOptions } from '../gateway-options.js';
import { FakeServices, pepper } from './services-fixture.js';

export interface Reply<Body> {
  status: number;
  headers: Record<string, string | undefined>;
  body: Body;
}

export interface CallOptions {
  key?: string;
  /** Sent as JSON; a text or bytes as they are. */
  body?: unknown;
  headers?: Record<string, string | string[]>;
  /** The peer's address. */
  from?: string;
}

export interface GatewayUnderTest {
  app: NestFastifyApplication;
  services: FakeServices;
  /** The gateway's clock, for cache, expiry and limits; it stands still unless moved. */
  clock: { nowMs: number };
  /** What was logged, a JSON object a line. */
  logged(): Record<string, unknown>[];
  call<Body = Problem>(method: string, url: string, options?: CallOptions): Promise<Reply<Body>>;
  close(): Promise<void>;
}

/** A gateway on the in-process bus with fake services behind it. */
export async function startGateway(options: Partial<GatewayOptions> = {}): Promise<GatewayUnderTest> {
  const bus = new InProcessBus();
  const clock = { nowMs: Date.parse('2026-10-01T00:00:00Z') };
  const lines: string[] = [];
  const keep = (line: string): void => {
    lines.push(line);
    if (/"level":"(error|fatal)"/.test(line)) recordError(line);
  };
  const app = await createGateway({
    rpc: RpcModule.forMemory({ bus }),
    keyPepper: pepper,
    logger: createLogger({ service: 'gateway', level: 'info', destination: { write: keep } }),
    metrics: createMetrics('gateway'),
    limits: 'off',
    deadlineMs: 5_000 * timeoutFactor,
    now: () => clock.nowMs,
    ...options,
  });
  return {
    app,
    services: new FakeServices(bus),
    clock,
    logged: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
    call: (method, url, callOptions) => call(app, method, url, callOptions),
    close: () => app.close(),
  };
}

export async function call<Body>(
  app: NestFastifyApplication,
  method: string,
  url: string,
  options: CallOptions = {},
): Promise<Reply<Body>> {
  const { key, body, headers = {}, from = '127.0.0.1' } = options;
  const payload =
    typeof body === 'string' || body instanceof Buffer || body === undefined ? body : JSON.stringify(body);
  const answer = await app.inject({
    method: method as InjectOptions['method'],
    url,
    remoteAddress: from,
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(payload !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(payload !== undefined && { payload }),
  });
  const json = /json/.test(String(answer.headers['content-type']));
  return {
    status: answer.statusCode,
    headers: answer.headers as Record<string, string | undefined>,
    body: (json && answer.payload !== '' ? JSON.parse(answer.payload) : answer.payload) as Body,
  };
}
