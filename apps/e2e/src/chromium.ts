import { existsSync } from 'node:fs';
import { chromiumPath, timeoutFactor } from '@atoll/testing';
import { chromium, type Browser, type BrowserContext, type CDPSession, type Page } from 'playwright-core';
import { platformUrl } from './client.js';

const executablePath = chromiumPath();

/** What this machine lacks for stories in a browser; undefined for nothing. */
export const chromiumLacking = existsSync(executablePath)
  ? undefined
  : 'Chromium is not installed; run: npm run test:setup';

/** The platform under test as people open it. */
export const pageUrl = platformUrl.replace('127.0.0.1', 'localhost');

/** The platform under test by plain http at another host than localhost: no secure context. */
export const plainUrl = platformUrl.replace('127.0.0.1', 'atoll.test');

const options = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--host-resolver-rules=MAP atoll.test 127.0.0.1',
];

export function launchChromium(): Promise<Browser> {
  return chromium.launch({ executablePath, args: options });
}

/** A person's browser, empty, and what its pages did: calls to the API, and breaches of their own policy. */
export class Person {
  readonly calls: string[] = [];
  readonly breaches: string[] = [];

  private constructor(readonly context: BrowserContext) {}

  static async arrive(browser: Browser): Promise<Person> {
    const person = new Person(await browser.newContext());
    person.context.setDefaultTimeout(60_000 * timeoutFactor);
    await person.context.exposeFunction('breached', (what: string) => person.breaches.push(what));
    await person.context.addInitScript(
      `addEventListener('securitypolicyviolation', (event) => breached(event.violatedDirective + ' ' + event.blockedURI))`,
    );
    person.context.on('response', (response) => {
      const { pathname } = new URL(response.url());
      if (pathname.startsWith('/api/'))
        person.calls.push(`${response.request().method()} ${pathname.slice(4)} ${response.status()}`);
    });
    return person;
  }

  async open(path: string): Promise<Page> {
    const page = await this.context.newPage();
    await page.goto(pageUrl + path);
    return page;
  }

  /** The calls since `mark`, a former number of them. */
  since(mark: number): string[] {
    return this.calls.slice(mark);
  }
}

/**
 * Puts a tab to sleep as a laptop does: no script of it runs, what it holds it holds on to, and messages pass it by.
 */
export async function sleep(page: Page): Promise<() => Promise<void>> {
  const session: CDPSession = await page.context().newCDPSession(page);
  await session.send('Debugger.enable');
  const paused = new Promise((resolve) => session.once('Debugger.paused', resolve));
  await session.send('Debugger.pause');
  // A script has to run for it to stop.
  void page.evaluate('0').catch(() => undefined);
  await paused;
  return async () => {
    await session.send('Debugger.resume');
    await session.detach();
  };
}
