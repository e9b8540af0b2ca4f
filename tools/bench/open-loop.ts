import { Agent, request, type OutgoingHttpHeaders } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

export interface Shot {
  path: string;
  headers: OutgoingHttpHeaders;
}

export interface OpenLoopResult {
  /** Answers by status; 0 stands for a connection that failed. */
  statuses: Record<string, number>;
  /** Milliseconds from the instant at which each request was due, ascending. */
  latenciesMs: number[];
}

const tickMs = 5;
const maxSockets = 256;

/**
 * Sends `perSecond` GET requests a second for `seconds`, however slowly they are answered. A latency counts from the
 * instant at which the request was due, so that a server that stalls cannot hide it by receiving fewer requests.
 */
export async function openLoop(
  port: number,
  load: { perSecond: number; seconds: number },
  shotAt: (index: number) => Shot,
): Promise<OpenLoopResult> {
  const agent = new Agent({ keepAlive: true, maxSockets });
  const statuses: Record<string, number> = {};
  const latenciesMs: number[] = [];
  const startedAtMs = performance.now();
  const shoot = (index: number): Promise<void> =>
    new Promise((resolve) => {
      const dueAtMs = startedAtMs + (index * 1000) / load.perSecond;
      const settle = (status: number): void => {
        statuses[status] = (statuses[status] ?? 0) + 1;
        latenciesMs.push(performance.now() - dueAtMs);
        resolve();
      };
      const outgoing = request({ agent, host: '127.0.0.1', port, ...shotAt(index) }, (incoming) => {
        incoming.resume();
        incoming.once('end', () => settle(incoming.statusCode ?? 0));
      });
      outgoing.once('error', () => settle(0));
      outgoing.end();
    });
  const total = Math.floor(load.perSecond * load.seconds);
  const open: Promise<void>[] = [];
  while (open.length < total) {
    const due = Math.min(total, Math.ceil(((performance.now() - startedAtMs) / 1000) * load.perSecond));
    while (open.length < due) open.push(shoot(open.length));
    await delay(tickMs);
  }
  await Promise.all(open);
  agent.destroy();
  latenciesMs.sort((one, other) => one - other);
  return { statuses, latenciesMs };
}

/** The value below which the share `fraction` (0 to 1) of an ascending list lies. */
export function percentile(ascending: readonly number[], fraction: number): number {
  return ascending[Math.min(ascending.length - 1, Math.floor(ascending.length * fraction))] ?? 0;
}
