import { expect, it } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.js';
import { spawnTypescript } from './spawn-typescript.js';

it('a free port is nobody else’s while its process runs, even where nobody listens there yet, and so is a range of ports', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-ports-'));
  process.env['TMPDIR'] = folder;
  const file = new URL('./free-port-process-fixture.ts', import.meta.url);
  const all = Array.from({ length: 3 }, () => spawnTypescript(file));
  while (all.some(({ lines }) => lines.length < 22)) await delay(10);
  for (const { kill } of all) kill('SIGKILL');
  await Promise.all(all.map(({ ended }) => ended));
  rmSync(folder, { recursive: true });
  expect(new Set(all.flatMap(({ lines }) => lines.slice(0, 20))).size).toBe(60);
  const ranges = all.map(({ lines }) => lines.slice(20));
  expect(ranges).toEqual(ranges.map(([range]) => [range, range]));
  expect(new Set(ranges.flat()).size).toBe(3);
});

it('a free port is one that `fetch` calls', async () => {
  const port = await freePort(80);
  await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
});
