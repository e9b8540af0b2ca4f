import { expect, it } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.js';
import { spawnTypescript } from './spawn-typescript.js';

it('a free port is nobody else’s while its process runs, even where nobody listens there yet', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-ports-'));
  process.env['TMPDIR'] = folder;
  const file = new URL('./free-port-process-fixture.ts', import.meta.url);
  const all = Array.from({ length: 3 }, () => spawnTypescript(file));
  while (all.some(({ lines }) => lines.length < 20)) await delay(10);
  for (const { kill } of all) kill('SIGKILL');
  await Promise.all(all.map(({ ended }) => ended));
  rmSync(folder, { recursive: true });
  expect(new Set(all.flatMap(({ lines }) => lines)).size).toBe(60);
});

it('a free port is one that `fetch` calls', async () => {
  const port = await freePort(80);
  await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
});
