import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createMetrics, startHealthServer, type ReadinessCheck } from './health.js';

const manifest = JSON.parse(readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8')) as {
  version: string;
};

async function withServer(checks: ReadinessCheck[], use: (base: string) => Promise<void>): Promise<void> {
  const server = await startHealthServer({ port: 0, host: '127.0.0.1', checks, metrics: createMetrics('teams') });
  try {
    await use(`http://127.0.0.1:${server.port}`);
  } finally {
    await server.close();
  }
}

describe('a process tells how it is', () => {
  it('is live while it answers, and shows its figures', () =>
    withServer([], async (base) => {
      const live = await fetch(`${base}/livez`);
      expect([live.status, await live.json()]).toEqual([200, { status: 'live', version: manifest.version }]);
      expect(await (await fetch(`${base}/metrics`)).text()).toContain(
        'process_cpu_user_seconds_total{service="teams"}',
      );
      expect(await (await fetch(`${base}/metrics`)).text()).toContain(
        `atoll_build_info{version="${manifest.version}",service="teams"} 1`,
      );
      expect((await fetch(`${base}/other`)).status).toBe(404);
    }));

  it('is not ready while any check has a reason, throws or does not answer, and names each', () => {
    const checks: ReadinessCheck[] = [
      { name: 'fine', check: () => null },
      { name: 'nats', check: () => 'not connected' },
      { name: 'broken', check: () => Promise.reject(new Error('postgres://secret')) },
      { name: 'silent', check: () => new Promise(() => undefined) },
    ];
    return withServer(checks, async (base) => {
      const answer = await fetch(`${base}/readyz`);
      expect(answer.status).toBe(503);
      expect(await answer.json()).toEqual({
        status: 'not_ready',
        reasons: [
          { name: 'nats', reason: 'not connected' },
          { name: 'broken', reason: 'the check itself failed' },
          { name: 'silent', reason: 'no answer within 2000 ms' },
        ],
      });
    });
  });

  it('is ready when every check is fine', () =>
    withServer([{ name: 'fine', check: () => null }], async (base) => {
      expect((await fetch(`${base}/readyz`)).status).toBe(200);
    }));
});
