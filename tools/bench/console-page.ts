import type { Browser, CDPSession, Page } from 'playwright-core';
import { percentile } from './measure.js';

/** What of the page's own world is used in it. */
interface InPage {
  performance: {
    now(): number;
    getEntriesByType(type: string): { startTime: number; duration: number; name: string; responseEnd: number }[];
  };
  requestAnimationFrame: (this: void, frame: (atMs: number) => void) => void;
  document: { querySelector(selector: string): { scrollTop: number; scrollHeight: number } | null };
  history: { pushState(state: unknown, title: string, to: string): void };
  dispatchEvent: (this: void, event: unknown) => void;
  PopStateEvent: new (type: string) => unknown;
}

export interface FirstLoad {
  /** Milliseconds from the beginning of the navigation until the first heading was painted. */
  readonly interactiveMs: number;
  /** KB (1024 bytes) of script, as they came over the wire. */
  readonly scriptKb: number;
}

/** One load with nothing in any cache. */
export async function firstLoad(browser: Browser, url: string): Promise<FirstLoad> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    const session = await context.newCDPSession(page);
    const bytes = await countScripts(session);
    await page.goto(url);
    await page.locator('h1').first().waitFor();
    const interactiveMs = await page.evaluate(() => {
      const { performance, requestAnimationFrame } = globalThis as unknown as InPage;
      return new Promise<number>((resolve) =>
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now()))),
      );
    });
    return { interactiveMs, scriptKb: bytes() / 1024 };
  } finally {
    await context.close();
  }
}

async function countScripts(session: CDPSession): Promise<() => number> {
  const scripts = new Set<string>();
  let total = 0;
  session.on('Network.responseReceived', ({ requestId, type }) => type === 'Script' && scripts.add(requestId));
  session.on(
    'Network.loadingFinished',
    ({ requestId, encodedDataLength }) => (total += scripts.has(requestId) ? encodedDataLength : 0),
  );
  await session.send('Network.enable');
  return () => total;
}

/**
 * Milliseconds between the end of the answer to a request like `request` and the first frame in which `drawn` is there.
 */
export async function drawnAfterData(
  page: Page,
  to: string,
  { request, drawn }: { request: string; drawn: string },
): Promise<number> {
  return page.evaluate(
    ([path = '', part = '', selector = '']) => {
      const { performance, requestAnimationFrame, document, history, dispatchEvent, PopStateEvent } =
        globalThis as unknown as InPage;
      history.pushState({}, '', path);
      dispatchEvent(new PopStateEvent('popstate'));
      const beganMs = performance.now();
      return new Promise<number>((resolve, reject) => {
        const look = (): void => {
          if (performance.now() - beganMs > 30_000) return reject(new Error(`Nothing of ${part} was drawn.`));
          const answer = performance
            .getEntriesByType('resource')
            .findLast(({ name, responseEnd }) => name.includes(part) && responseEnd > beganMs);
          if (!answer || !document.querySelector(selector)) return requestAnimationFrame(look);
          requestAnimationFrame(() => resolve(performance.now() - answer.responseEnd));
        };
        look();
      });
    },
    [to, request, drawn],
  );
}

/** Lengths of frames, in milliseconds, while a box is scrolled from its end to its beginning. */
export async function framesOfScrolling(
  page: Page,
  box: string,
  stepPx: number,
): Promise<{ p50: number; p95: number; frames: number }> {
  const frames = await page.evaluate(
    ([selector = '', step = '0']) => {
      const { requestAnimationFrame, document } = globalThis as unknown as InPage;
      const scrolled = document.querySelector(selector);
      if (!scrolled) throw new Error(`There is no ${selector}.`);
      scrolled.scrollTop = scrolled.scrollHeight;
      return new Promise<number[]>((resolve) => {
        const lengths: number[] = [];
        let lastMs: number | undefined;
        const frame = (atMs: number): void => {
          if (lastMs !== undefined) lengths.push(atMs - lastMs);
          lastMs = atMs;
          if (scrolled.scrollTop <= Number(step) || lengths.length >= 600) return resolve(lengths);
          scrolled.scrollTop -= Number(step);
          requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
      });
    },
    [box, String(stepPx)],
  );
  return { p50: percentile(frames, 0.5), p95: percentile(frames, 0.95), frames: frames.length };
}

/** MB (10^6 bytes) of the heap of scripts that are still in use. */
export async function heapMb(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  return usedSize / 1e6;
}
