import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { timeoutFactor } from '@atoll/testing';
import type { Browser, BrowserContextOptions, CDPSession, Page, Request, Route } from 'playwright-core';
import { chromiumLacking, launchChromium } from '../chromium.js';

/** Why stories in a browser cannot run here; undefined: they can. */
export function browserLack(): string | undefined {
  return chromiumLacking;
}

const patienceMs = 60_000 * timeoutFactor;

let browser: Browser | undefined;
const openTabs = new Set<Tab>();

export async function openBrowser(): Promise<void> {
  browser = await launchChromium();
}

/**
 * A tab that its story did not close is one of a story that failed: what it shows is the first that a reader asks for.
 */
export async function closeBrowser(): Promise<void> {
  for (const tab of openTabs) process.stderr.write(await stateOf(tab));
  openTabs.clear();
  await browser?.close();
}

async function stateOf({ page, faults, underWay }: Tab): Promise<string> {
  const text = await page.innerText('body', { timeout: 2_000 }).catch(String);
  const calls = [...underWay].map((request) => `${request.method()} ${request.url()}`);
  return `A tab was left at ${page.url()}\nfaults: ${faults.join(', ')}\nunder way: ${calls.join(', ')}\n${text}\n`;
}

/**
 * A page in a context of its own, and what went wrong in it: violations of its policy, faults of its script, files of
 * it that did not come, requests that left its origin.
 */
export interface Tab {
  page: Page;
  faults: string[];
  /** What has neither been answered nor failed. */
  underWay: ReadonlySet<Request>;
  close(): Promise<void>;
}

const isOfPage = (request: Request) => ['stylesheet', 'script', 'font'].includes(request.resourceType());

/** A policy that is broken, and a script that fails, is a defect in whichever story it happens. */
export async function openTab(url: string, options: BrowserContextOptions = {}): Promise<Tab> {
  if (!browser) throw new Error('Open the browser first.');
  const context = await browser.newContext({
    baseURL: url,
    reducedMotion: 'reduce',
    timezoneId: 'Europe/Oslo',
    locale: 'en-GB',
    ...options,
  });
  context.setDefaultTimeout(patienceMs);
  const faults: string[] = [];
  await context.exposeFunction('__fault', (fault: string) => faults.push(fault));
  await context.addInitScript(() => {
    // This runs in the page, which has a document and what was exposed to it.
    const inPage = globalThis as unknown as EventTarget & { __fault: (fault: string) => void };
    inPage.addEventListener('securitypolicyviolation', (event) => {
      const { violatedDirective, blockedURI, sourceFile, lineNumber } = event as Event & Record<string, string>;
      inPage.__fault(`policy: ${violatedDirective} ${blockedURI} at ${sourceFile}:${lineNumber}`);
    });
  });
  const page = await context.newPage();
  page.on('pageerror', (error) => faults.push(`script: ${error.message}`));
  page.on('console', (message) => {
    // A refused call is told on the console too; stories refuse calls on purpose.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      faults.push(`console: ${message.text()}`);
  });
  // A page without its style sheet, script or font is broken, whatever it shows.
  page.on('requestfailed', (request) => {
    const { errorText = '' } = request.failure() ?? {};
    // What the page itself left off, when it was left, is not lost.
    if (isOfPage(request) && errorText !== 'net::ERR_ABORTED') faults.push(`lost: ${request.url()} ${errorText}`);
  });
  page.on('response', (response) => {
    if (isOfPage(response.request()) && response.status() >= 400)
      faults.push(`lost: ${response.url()} ${response.status()}`);
  });
  page.on('request', (request) => {
    if (!/^(?:data|blob):/.test(request.url()) && new URL(request.url()).origin !== url)
      faults.push(`left: ${request.url()}`);
  });
  const underWay = new Set<Request>();
  page.on('request', (request) => underWay.add(request));
  page.on('requestfinished', (request) => underWay.delete(request));
  page.on('requestfailed', (request) => underWay.delete(request));
  const close = async () => {
    openTabs.delete(tab);
    await context.close();
  };
  const tab: Tab = { page, faults, underWay, close };
  openTabs.add(tab);
  return tab;
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/**
 * The rules of `tags` that read colours. A theme changes colours alone: what is right for the rest in one is right in
 * the other.
 */
const colourRules = ['color-contrast', 'link-in-text-block'];
const sessions = new WeakMap<Page, Promise<CDPSession>>();

/**
 * A world of its own in the page, so that the page keeps its policy. The same one until another document is loaded, and
 * axe is in it.
 */
async function axeWorld(page: Page): Promise<{ session: CDPSession; contextId: number }> {
  const opening = sessions.get(page) ?? page.context().newCDPSession(page);
  sessions.set(page, opening);
  const session = await opening;
  const { frameTree } = await session.send('Page.getFrameTree');
  const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', {
    frameId: frameTree.frame.id,
    worldName: 'axe',
  });
  const { result } = await session.send('Runtime.evaluate', { contextId, expression: 'typeof axe' });
  if (result.value === 'undefined') await session.send('Runtime.evaluate', { contextId, expression: axe });
  return { session, contextId };
}

/** What axe finds on the page as it is. A line a violation. */
export async function violations(
  page: Page,
  exclude: string[] = [],
  what: 'in all' | 'in its colours' = 'in all',
): Promise<string[]> {
  const { session, contextId } = await axeWorld(page);
  const options = {
    resultTypes: ['violations'],
    runOnly: what === 'in all' ? tags : { type: 'rule', values: colourRules },
  };
  const { result } = await session.send('Runtime.evaluate', {
    contextId,
    awaitPromise: true,
    returnByValue: true,
    expression: `axe.run(${JSON.stringify({ exclude })}, ${JSON.stringify(options)}).then(({ violations }) => violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => id + ': ' + html.slice(0, 200) + ' ' + failureSummary.replaceAll('\\n', ' '))))`,
  });
  return result.value as string[];
}

const pictures = process.env.ATOLL_SCREENSHOTS;

/** Keeps a picture of the page, where `ATOLL_SCREENSHOTS` names a folder for them. */
export async function picture(page: Page, name: string): Promise<void> {
  if (!pictures) return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: false });
}

/** Logs in by an API key, as somebody who types it. */
export async function logInWithKey(page: Page, key: string, path = '/'): Promise<void> {
  await page.goto(path);
  await page.getByRole('button', { name: 'Use an API key' }).click();
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.locator('nav[aria-label=Main]').waitFor({ state: 'attached' });
}

/** Logs in by a password, and is at the path then: a session goes on where the page is loaded again. */
export async function logInWithPassword(page: Page, email: string, password: string, path = '/'): Promise<void> {
  await page.goto(path);
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.locator('nav[aria-label=Main]').waitFor({ state: 'attached' });
}

interface Held {
  /** Resolves when the first of them is held. */
  held: Promise<void>;
  letGo: () => void;
}

async function hold(page: Page, url: string, handle: (route: Route, wait: () => Promise<void>) => Promise<void>) {
  const [held, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const wait = () => {
    held.resolve();
    return free.promise;
  };
  await page.route(url, (route) => handle(route, wait));
  return { held: held.promise, letGo: free.resolve };
}

/** Holds calls whose URL matches until they are let go. */
export function holdCalls(page: Page, url: string): Promise<Held> {
  return hold(page, url, async (route, wait) => {
    await wait();
    await route.fallback();
  });
}

/** Holds the answers to calls whose URL matches until they are let go: the platform has done what was asked. */
export function holdAnswers(page: Page, url: string): Promise<Held> {
  return hold(page, url, async (route, wait) => {
    const response = await route.fetch();
    await wait();
    await route.fulfill({ response });
  });
}

/** Loses the answer to the next call whose URL matches: the platform has done what was asked. */
export function loseAnswer(page: Page, url: string): Promise<unknown> {
  const lose = async (route: Route) => {
    await route.fetch();
    await route.abort();
  };
  return page.route(url, lose, { times: 1 });
}

/** As a browser whose tab was hidden and is shown again: a page reads again what is older than some seconds. */
export async function showAgain(page: Page): Promise<void> {
  // Nothing that was read is fresh any more.
  await page.evaluate('{ const now = Date.now.bind(Date); Date.now = () => now() + 60_000; }');
  await page.evaluate(`dispatchEvent(new Event('visibilitychange'))`);
}

/** Hides the tab: it asks for nothing in an interval, so what it reads again, it reads for another reason. */
export async function hide(page: Page): Promise<void> {
  await page.evaluate(`Object.defineProperty(document, 'visibilityState', { value: 'hidden' })`);
  await page.evaluate(`dispatchEvent(new Event('visibilitychange'))`);
}

/**
 * Goes to another page of the console as a person does, by the page's own history: nothing is loaded again, and the key
 * stays in memory.
 */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate((to) => {
    const { history, dispatchEvent, PopStateEvent } = globalThis as unknown as {
      history: { pushState(state: unknown, title: string, to: string): void };
      dispatchEvent: (event: unknown) => void;
      PopStateEvent: new (type: string) => unknown;
    };
    history.pushState({}, '', to);
    dispatchEvent(new PopStateEvent('popstate'));
  }, path);
}
