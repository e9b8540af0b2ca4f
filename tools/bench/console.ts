import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { chromiumPath, freePort } from '@atoll/testing';
import { chromium, type Browser, type Page } from 'playwright-core';
import { drawnAfterData, firstLoad, framesOfScrolling, heapMb, type FirstLoad } from './console-page.js';
import { serveEmptyPage } from './empty-page.js';
import { median } from './measure.js';
import { firstLine, start, stopAll, untilReady } from './processes.js';

/**
 * `npm run bench console`: the console in headless Chromium over a platform with the demo. An hour of polling is an
 * hour of the page's clock, which is put forward; its calls are real.
 */
const { values } = parseArgs({
  options: { loads: { type: 'string', default: '7' }, minutes: { type: 'string', default: '60' } },
});
const pollMs = 10_000;
const settleMs = 60;
const logLines = 10_000;

async function loadsOf(browser: Browser, url: string): Promise<FirstLoad> {
  const loads: FirstLoad[] = [];
  for (let at = 0; at < Number(values.loads); at += 1) loads.push(await firstLoad(browser, url));
  return {
    interactiveMs: median(loads.map((load) => load.interactiveMs)),
    scriptKb: median(loads.map((load) => load.scriptKb)),
  };
}

/** A page that is logged in by a key, at a path. */
async function openPage(
  browser: Browser,
  { url, adminKey: key }: Demo,
  path: string,
  prepare: (page: Page) => Promise<void> = () => Promise.resolve(),
): Promise<Page> {
  const context = await browser.newContext({ baseURL: url, viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await prepare(page);
  await page.goto(path);
  await page.getByRole('button', { name: 'Use an API key' }).click();
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.locator('nav[aria-label=Main]').waitFor({ state: 'attached' });
  return page;
}

/** A log of so many lines, which no pod has to write first. */
async function giveLog(page: Page): Promise<void> {
  const startMs = Date.parse('2026-11-01T00:00:00Z');
  await page.route('**/api/logs/pods?**', async (route) => {
    const query = new URL(route.request().url()).searchParams;
    const isBack = query.get('order') === 'desc';
    const end = Number(query.get('cursor') ?? logLines);
    const from = isBack ? Math.max(0, end - Number(query.get('limit'))) : logLines;
    const data = Array.from({ length: isBack ? end - from : 0 }, (_, at) => ({
      timestamp: new Date(startMs + end - 1 - at).toISOString(),
      pod_name: 'trainer-abcde',
      container: 'main',
      stream: 'stdout',
      message: `line ${end - 1 - at} ${'x'.repeat(at % 200)}`,
      gpuaas_id: '1',
    }));
    await route.fulfill({ json: { data, next_cursor: isBack && from === 0 ? null : String(from) } });
  });
}

/** Reads back until all lines are there, then scrolls through them. */
async function reportLog(browser: Browser, demo: Demo): Promise<void> {
  const page = await openPage(browser, demo, `/teams/${demo.teamId}/logs?pod=trainer-abcde`, giveLog);
  const box = page.locator('.log-box');
  await box.locator('tbody tr').first().waitFor();
  const count = async () => Number(await box.locator('table').getAttribute('aria-rowcount'));
  for (let before = 0; (await count()) <= logLines && before !== (await count());) {
    before = await count();
    await box.evaluate((element) => ((element as unknown as { scrollTop: number }).scrollTop = 0));
    for (let waited = 0; waited < 100 && (await count()) === before; waited += 1) await delay(20);
  }
  const lines = (await count()) - 1;
  const { p50, p95, frames } = await framesOfScrolling(page, '.log-box', 600);
  console.log(
    `scrolling ${lines} lines of a log: frames of ${p50.toFixed(1)} ms p50, ${p95.toFixed(1)} ms p95 (${frames} frames)`,
  );
  await page.context().close();
}

interface Demo {
  url: string;
  adminKey: string;
  teamId: string;
}

/** A platform with the demo, and the id of its first team. */
async function startDemo(folder: string): Promise<Demo> {
  const [port, adminKey] = [await freePort(), createApiKey()];
  const env = {
    PORT: String(port),
    ATOLL_DATA_DIR: folder,
    ATOLL_ADMIN_KEY: adminKey,
    ATOLL_LIMITS: 'off',
    ATOLL_SSH_PORT: '0',
  };
  const url = `http://127.0.0.1:${port}`;
  await firstLine(start('apps/platform/src/main.js', [], env));
  await untilReady(`${url}/readyz`);
  const beganMs = performance.now();
  const [code] = (await once(start('apps/platform/src/demo.js', [url], { ATOLL_KEY: adminKey }), 'exit')) as [number];
  if (code !== 0) throw new Error('The demo was not loaded.');
  console.log(`loading the demo: ${((performance.now() - beganMs) / 1000).toFixed(1)} s`);
  const answer = await fetch(`${url}/api/team?limit=1`, { headers: { authorization: `Bearer ${adminKey}` } });
  const { data } = (await answer.json()) as { data: { id: string }[] };
  return { url, adminKey, teamId: data[0]?.id ?? '' };
}

async function reportLoads(browser: Browser, { url }: Demo): Promise<void> {
  const empty = await serveEmptyPage();
  try {
    for (const [name, at] of [
      ['console', `${url}/sign-in`],
      ['empty page', empty.url],
    ] as const) {
      const { interactiveMs, scriptKb } = await loadsOf(browser, at);
      console.log(
        `first load of ${name}: ${interactiveMs.toFixed(0)} ms, ${scriptKb.toFixed(1)} KB of script (median of ${values.loads})`,
      );
    }
  } finally {
    await empty.stop();
  }
}

async function reportDrawing(browser: Browser, demo: Demo): Promise<void> {
  const { teamId } = demo;
  const page = await openPage(browser, demo, `/teams/${teamId}`);
  await page.locator('.skeleton').first().waitFor({ state: 'detached' });
  const [from, to] = [366, 0].map((days) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10));
  const year = await drawnAfterData(page, `/teams/${teamId}/billing?from=${from}&to=${to}&interval=daily`, {
    request: '/daily/',
    drawn: '.chart-frame svg path',
  });
  console.log(`a year by day, drawn after its data: ${year.toFixed(0)} ms`);
  await page.context().close();
}

async function reportHeap(browser: Browser, demo: Demo): Promise<void> {
  const page = await openPage(browser, demo, `/teams/${demo.teamId}/pools`, async (opened) => {
    await opened.clock.install();
    await opened.clock.resume();
  });
  const session = await page.context().newCDPSession(page);
  const heaps: string[] = [];
  let calls = 0;
  page.on('response', (response) => (calls += response.url().includes('/api/') ? 1 : 0));
  const rounds = (Number(values.minutes) * 60_000) / pollMs;
  for (let round = 0; round <= rounds; round += 1) {
    if (round % (rounds / 6) === 0) heaps.push((await heapMb(session)).toFixed(1));
    await page.clock.runFor(pollMs);
    // For the answers, which take real time.
    await delay(settleMs);
  }
  console.log(
    `heap over ${values.minutes} minutes of polling with ${calls} calls, at each sixth: ${heaps.join(', ')} MB`,
  );
  await page.context().close();
}

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-'));
const browser = await chromium.launch({ executablePath: chromiumPath() });
try {
  const [load = 0] = loadavg();
  console.log(`${cpus().length} cores, load ${load.toFixed(1)}, Chromium ${browser.version()}`);
  const demo = await startDemo(folder);
  await reportLoads(browser, demo);
  await reportDrawing(browser, demo);
  await reportLog(browser, demo);
  await reportHeap(browser, demo);
} finally {
  await browser.close();
  await stopAll();
  rmSync(folder, { recursive: true, force: true });
}
