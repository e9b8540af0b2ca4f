import { describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import { emptyBrowser, fake, tab, useFakeBrowser, wake } from './fake-browser-fixture.js';
import { NoSession, RefreshFailed } from './session-tab.js';

useFakeBrowser();

const unlessOut = (error: unknown) => {
  if (!(error instanceof NoSession)) throw error;
};

describe('the session of a tab', () => {
  it('is that of its browser: a new tab takes part, or is told that there is none', async () => {
    const [first, second, third] = [tab(), tab(), tab()];
    await first.tab.start();
    await first.tab.logIn('ada', 'secret');
    await second.tab.start();
    expect([first.told, second.told]).toEqual([['out: none', 'in as ada'], ['in as ada']]);
    expect((await second.tab.fetch('/pods')).status).toBe(200);
    fake.server.end();
    await third.tab.start();
    expect(third.told).toEqual(['out: none']);
  });

  it('ends with one word to its page where it was ended elsewhere, however many calls are under way', async () => {
    const { tab: only, told } = tab();
    await only.logIn('ada', 'secret');
    fake.server.end();
    await Promise.all([1, 2, 3].map(() => only.fetch('/pods').catch(unlessOut)));
    await expect(only.fetch('/pods')).rejects.toThrow(NoSession);
    expect(told).toEqual(['in as ada', 'out: ended']);
  });

  it('goes on after a refresh that failed for the moment', async () => {
    const { tab: only, told } = tab();
    await only.logIn('ada', 'secret');
    fake.server.refuses = 503;
    await expect(only.fetch('/pods')).rejects.toThrow('The session cannot be refreshed at the moment (503).');
    fake.server.refuses = undefined;
    expect((await only.fetch('/pods')).status).toBe(200);
    expect(told).toEqual(['in as ada']);
  });

  it('is still unknown in a new tab while its refresh fails: the page is told why, and of nothing else', async () => {
    const { tab: only, told } = tab();
    fake.server.answers.set('/user/refresh', { status: 503, body: { code: 'unavailable' } });
    await expect(only.start()).rejects.toMatchObject({
      refusal: { response: { status: 503 }, body: { code: 'unavailable' } },
    });
    fake.server.answers.clear();
    expect(told).toEqual([]);
    await only.start();
    expect(told).toEqual(['out: none']);
  });

  it('waits 8 s for a refresh and 5 s for a log-out: this tab is out then, and says that the session may go on', async () => {
    const { tab: only, told } = tab();
    await only.logIn('ada', 'secret');
    const patience: number[] = [];
    const never = new Promise<never>(() => undefined);
    jest.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
      patience.push(ms);
      const timer = new AbortController();
      setTimeout(() => timer.abort(new Error('too late')), 1);
      return timer.signal;
    });
    fake.way = (what, value) => (what.endsWith('to the server') ? never : Promise.resolve(value));
    await expect(only.fetch('/pods')).rejects.toThrow(new RefreshFailed());
    expect(told).toEqual(['in as ada']);
    await expect(only.logOut()).rejects.toThrow('too late');
    expect([patience, told]).toEqual([
      [5_000, 8_000, 5_000],
      ['in as ada', 'out: logged_out'],
    ]);
    jest.restoreAllMocks();
  });

  it.each([503, 200])('may go on after a log-out that gets %s: this tab is out, and says so', async (status) => {
    const { tab: only, told } = tab();
    await only.logIn('ada', 'secret');
    fake.server.answers.set('/user/logout', { status, body: {} });
    await expect(only.logOut()).rejects.toThrow(`The log-out failed (${status})`);
    expect(told).toEqual(['in as ada', 'out: logged_out']);
  });

  it('begins with no log-in that is refused; the page gets all that the server said', async () => {
    const { tab: only, told } = tab();
    const body = {
      code: 'invalid_input',
      detail: 'email must be an e-mail address.',
      errors: [{ path: 'email' }],
      request_id: 'r',
    };
    for (const path of ['/user/login', '/user/login/second-factor', '/user/login/passkey/begin'])
      fake.server.answers.set(path, { status: 400, body });
    const outcomes = [await only.logIn('ada', 'x'), await only.logInWithCode('t', '1'), await only.logInWithPasskey()];
    for (const outcome of outcomes) expect(outcome).toMatchObject({ kind: 'refused', response: { status: 400 }, body });
    expect(told).toEqual([]);
  });

  it('is not the next user’s: a tab of the former one leaves', async () => {
    const [first, second] = [tab(), tab()];
    await first.tab.logIn('ada', 'secret');
    await second.tab.logIn('bob', 'secret');
    await expect(first.tab.fetch('/pods')).rejects.toThrow(NoSession);
    expect([first.told, second.told]).toEqual([['in as ada', 'out: other_user'], ['in as bob']]);
  });

  it('ends with the log-out of its own user, and not with that of another one in this browser, who is told nothing', async () => {
    fake.server.lifeS = 3600;
    const [first, beside, second] = [tab(), tab(), tab()];
    await first.tab.logIn('ada', 'secret');
    await beside.tab.start();
    await second.tab.logIn('bob', 'secret');
    await first.tab.logOut();
    expect(fake.server.present).toEqual(['bob']);
    wake();
    expect((await second.tab.fetch('/pods')).status).toBe(200);
    const out = ['in as ada', 'out: logged_out'];
    expect([first.told, beside.told, second.told]).toEqual([out, out, ['in as bob']]);
    await second.tab.logOut();
    expect([fake.server.present, second.told]).toEqual([[], ['in as bob', 'out: logged_out']]);
  });

  it('ends with the log-out of a tab whose own session has ended, where its user has logged in again since', async () => {
    fake.server.lifeS = 3600;
    const [first, second] = [tab(), tab()];
    await first.tab.logIn('ada', 'secret');
    await second.tab.logIn('ada', 'secret');
    fake.server.end('session-1');
    await first.tab.logOut();
    wake();
    const out = ['in as ada', 'out: logged_out'];
    expect([fake.server.present, first.told, second.told]).toEqual([[], out, out]);
    const opened = tab();
    await opened.tab.start();
    expect(opened.told).toEqual(['out: none']);
  });

  it('goes on after the log-out of a tab whose own session has ended, where another user has logged in since', async () => {
    fake.server.lifeS = 3600;
    const [first, second] = [tab(), tab()];
    await first.tab.logIn('ada', 'secret');
    await second.tab.logIn('bob', 'secret');
    fake.server.end('session-1');
    await first.tab.logOut();
    expect((await second.tab.fetch('/pods')).status).toBe(200);
    expect([first.told, second.told]).toEqual([['in as ada', 'out: other_user'], ['in as bob']]);
  });

  it('may go on where a log-out needs a refresh that is not answered: this tab is out after 5 s, and says so', async () => {
    const [first, second] = [tab(), tab()];
    await first.tab.logIn('ada', 'secret');
    await second.tab.logIn('ada', 'secret');
    fake.server.end('session-1');
    const timers: AbortController[] = [];
    jest.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
      timers.push(new AbortController());
      return timers.at(-1)?.signal as AbortSignal;
    });
    fake.way = (what, value) => {
      if (what !== '/user/refresh to the server') return Promise.resolve(value);
      timers[0]?.abort(new Error('too late'));
      return new Promise<never>(() => undefined);
    };
    await expect(first.tab.logOut()).rejects.toThrow('too late');
    expect([first.told, fake.server.present]).toEqual([['in as ada', 'out: logged_out'], ['ada']]);
    jest.restoreAllMocks();
  });

  it('goes on while another user logs out and its own refresh is under way', async () => {
    const [first, second] = [tab(), tab()];
    await first.tab.logIn('ada', 'secret');
    await second.tab.logIn('bob', 'secret');
    const [held, arrive] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    fake.way = async (what, value) => {
      if (what !== 'the answer to /user/refresh') return value;
      held.resolve();
      await arrive.promise;
      return value;
    };
    const call = second.tab.fetch('/pods');
    await held.promise;
    await first.tab.logOut();
    arrive.resolve();
    expect([(await call).status, second.told]).toEqual([200, ['in as bob']]);
  });

  it('ends in all tabs with a log-out that an earlier release noted, which names no user', async () => {
    const { tab: only, told } = tab();
    await only.logIn('ada', 'secret');
    fake.stored.set('atoll-logged-out', '1796000000000 k1b2');
    wake();
    expect(told).toEqual(['in as ada', 'out: logged_out']);
    await only.logIn('ada', 'secret');
    await only.logOut();
    expect(told.slice(2)).toEqual(['in as ada', 'out: logged_out']);
  });

  it('goes on with the log-out of another user in a browser where an earlier release has noted one', async () => {
    fake.stored.set('atoll-logged-out', '1796000000000 k1b2');
    fake.server.lifeS = 3600;
    const [first, second] = [tab(), tab()];
    await first.tab.logIn('ada', 'secret');
    await second.tab.logIn('bob', 'secret');
    await first.tab.logOut();
    wake();
    expect([first.told, second.told]).toEqual([['in as ada', 'out: logged_out'], ['in as bob']]);
  });

  it.each([
    ['that an earlier release noted', () => fake.stored.set('atoll-logged-out', '1796000000000 k1b2')],
    ['in a tab without a session', () => tab().tab.logOut()],
  ])('ends with a log-out %s, also where another user logs out before it wakes', async (_what, leaveAll) => {
    fake.server.lifeS = 3600;
    const [first, second] = [tab(), tab()];
    await first.tab.logIn('ada', 'secret');
    await second.tab.logIn('bob', 'secret');
    // The tab of bob sleeps and loses messages.
    fake.channels = [];
    await leaveAll();
    await first.tab.logOut().catch(() => undefined);
    wake();
    expect(second.told).toEqual(['in as bob', 'out: logged_out']);
  });

  it.each([
    ['refreshed', '/user/refresh', 200],
    ['ended', '/pods', 'no session'],
  ] as const)('is that of a log-in which comes while the former session is %s', async (_what, path, outcome) => {
    const { tab: only, told } = tab();
    await only.logIn('ada', 'secret');
    if (path === '/pods') fake.server.lifeS = 3600;
    await only.fetch('/pods');
    const [held, arrive] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    fake.way = async (what, value) => {
      if (what !== `the answer to ${path}`) return value;
      held.resolve();
      await arrive.promise;
      return value;
    };
    if (path === '/pods') fake.server.end();
    const call = only.fetch('/pods').then(
      ({ status }) => status,
      (error: unknown) => (error instanceof NoSession ? 'no session' : error),
    );
    await held.promise;
    await only.logIn('bob', 'secret');
    arrive.resolve();
    expect([await call, told]).toEqual([outcome, ['in as ada', 'in as bob']]);
  });

  it('refreshes once for many calls of a tab', async () => {
    const { tab: only } = tab();
    await only.logIn('ada', 'secret');
    await Promise.all([1, 2, 3].map(() => only.fetch('/pods')));
    expect(fake.server.calls.filter((path) => path === '/user/refresh')).toHaveLength(1);
  });

  it('ends in every tab with a log-out in one, whatever is under way; no page is told twice, and none comes back', async () => {
    const ask = fc.constantFrom('calls', 'wakes', 'opens', 'logs out');
    const asked = fc.array(fc.tuple(ask, fc.nat({ max: 2 })), { minLength: 1, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(asked, fc.nat({ max: 2 }), fc.scheduler(), async (steps, leaver, scheduler) => {
        emptyBrowser();
        const tabs = [tab(), tab(), tab()];
        await tabs[0]?.tab.logIn('ada', 'secret');
        for (const { tab: other } of tabs.slice(1)) await other.start();
        fake.way = (what, value) => scheduler.schedule(Promise.resolve(value), what);
        const under = steps.map(async ([what, index]) => {
          await fake.way(what, undefined);
          const { tab: one } = tabs[index] ?? tab();
          if (what === 'wakes') wake();
          else if (what === 'calls') await one.fetch('/pods').catch(unlessOut);
          else if (what === 'logs out') await one.logOut();
          else {
            const opened = tab();
            tabs.push(opened);
            await opened.tab.start();
          }
        });
        const last = fake.way('the log-out', undefined).then(() => tabs[leaver]?.tab.logOut());
        await scheduler.waitFor(Promise.all([...under, last]));
        await scheduler.waitIdle();
        const shown = tabs.map(({ told }) => told.at(-1)?.startsWith('in'));
        expect(shown).toEqual(tabs.map(() => false));
        expect(tabs.map(({ tab: one }) => one.user)).toEqual(tabs.map(() => undefined));
        for (const { told } of tabs) {
          const kinds = told.map((line) => line.split(' ')[0]);
          expect(kinds.filter((kind, at) => kind === kinds[at - 1])).toEqual([]);
          expect(kinds.filter((kind) => kind === 'in').length).toBeLessThanOrEqual(1);
        }
      }),
      { numRuns: 300 },
    );
  });
});
