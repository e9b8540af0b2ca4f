import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { withPatience } from '@atoll/waiting';
import { version } from './version.js';

/**
 * One reason why a process may not be ready. `check` answers null when all is well, else the reason in words; a check
 * that throws has failed.
 */
export interface ReadinessCheck {
  readonly name: string;
  check(): Promise<string | null> | string | null;
}

const checkTimeoutMs = 2_000;

async function reasonOf(check: ReadinessCheck): Promise<string | null> {
  try {
    return await withPatience(Promise.resolve(check.check()), checkTimeoutMs, `no answer within ${checkTimeoutMs} ms`);
  } catch {
    return 'the check itself failed';
  }
}

/**
 * Runs all checks side by side, and returns why those have failed that have. Never throws and never takes longer than
 * two seconds.
 */
export async function failuresOf(checks: readonly ReadinessCheck[]): Promise<{ name: string; reason: string }[]> {
  const results = await Promise.all(checks.map(async (check) => ({ name: check.name, reason: await reasonOf(check) })));
  return results.flatMap(({ name, reason }) => (reason === null ? [] : [{ name, reason }]));
}

/** The process's own Prometheus figures, labelled with its service. */
export function createMetrics(service: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ service });
  collectDefaultMetrics({ register: registry });
  const help = 'Always 1; its label is the release that runs.';
  new Gauge({ name: 'atoll_build_info', help, labelNames: ['version'], registers: [registry] }).set({ version }, 1);
  return registry;
}

export interface HealthServer {
  readonly port: number;
  close(): Promise<void>;
}

/** `/livez`, `/readyz` and `/metrics` of a process without an HTTP API of its own. */
export async function startHealthServer(options: {
  port: number;
  host: string;
  checks: readonly ReadinessCheck[];
  metrics: Registry;
}): Promise<HealthServer> {
  const { port, host, checks, metrics } = options;
  const answerJson = (response: ServerResponse, status: number, body: object) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  const routes: Record<string, (response: ServerResponse) => Promise<unknown>> = {
    '/livez': (response) => Promise.resolve(answerJson(response, 200, { status: 'live', version })),
    '/readyz': async (response) => {
      const reasons = await failuresOf(checks);
      const isReady = reasons.length === 0;
      return answerJson(response, isReady ? 200 : 503, { status: isReady ? 'ready' : 'not_ready', reasons });
    },
    '/metrics': async (response) =>
      response.writeHead(200, { 'content-type': metrics.contentType }).end(await metrics.metrics()),
  };
  const server: Server = createServer((request, response) => {
    const route = request.method === 'GET' ? routes[request.url ?? ''] : undefined;
    if (!route) return void answerJson(response, 404, { status: 'not_found' });
    route(response).catch(() => answerJson(response, 500, { status: 'failed' }));
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
