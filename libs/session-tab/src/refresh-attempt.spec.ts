import { expect, it } from '@jest/globals';
import { fake, replace, tab, useFakeBrowser } from './fake-browser-fixture.js';
import { NoSession, RefreshFailed } from './session-tab.js';

useFakeBrowser();

const answer = 'the answer to /user/refresh';
const kept = () => [...fake.stored.keys()].filter((key) => key.includes('refresh'));
/** What an outage takes from the tabs of the browser. */
const lose = (lost: string) => {
  fake.way = (what, value) =>
    what === lost ? Promise.reject(new TypeError('Failed to fetch')) : Promise.resolve(value);
};
const loseNothing = () => (fake.way = (_what, value) => Promise.resolve(value));

it('names one attempt until a refresh is answered, whichever tab asks, and then another', async () => {
  const [first, second] = [tab(), tab()];
  await first.tab.logIn('ada', 'secret');
  lose(answer);
  await expect(first.tab.fetch('/pods')).rejects.toThrow(RefreshFailed);
  await expect(second.tab.start()).rejects.toThrow(RefreshFailed);
  lose('/user/refresh to the server');
  await expect(first.tab.fetch('/pods')).rejects.toThrow(RefreshFailed);
  loseNothing();
  fake.server.refuses = 504;
  await expect(second.tab.start()).rejects.toThrow(RefreshFailed);
  fake.server.refuses = undefined;
  await second.tab.start();
  expect(kept()).toEqual([]);
  await first.tab.fetch('/pods');
  const form = expect.stringMatching(/^[0-9a-f]{32}$/);
  const [id, ...others] = fake.server.attempts;
  expect([id, ...others]).toEqual([form, id, id, id, form]);
  expect(others.at(-1)).not.toBe(id);
});

it('goes on with the attempt, and with the session, where something else has answered in the place of the server', async () => {
  const { tab: only, told } = tab();
  await only.logIn('ada', 'secret');
  fake.server.answers.set('/user/refresh', { status: 200, body: null });
  await expect(only.fetch('/pods')).rejects.toThrow(RefreshFailed);
  fake.server.answers.clear();
  expect((await only.fetch('/pods')).status).toBe(200);
  const [first, second] = fake.server.attempts;
  expect([second, told]).toEqual([first, ['in as ada']]);
});

it('ends the attempt with the session', async () => {
  const { tab: only } = tab();
  await only.logIn('ada', 'secret');
  lose(answer);
  await expect(only.fetch('/pods')).rejects.toThrow(RefreshFailed);
  expect(kept()).toHaveLength(1);
  loseNothing();
  fake.server.end();
  await expect(only.fetch('/pods')).rejects.toThrow(NoSession);
  expect(kept()).toEqual([]);
});

it('keeps the attempt that a tab has begun while the answer to the one before was on its way to another', async () => {
  replace('navigator', {});
  const [slow, quick] = [tab(), tab()];
  await slow.tab.logIn('ada', 'secret');
  await quick.tab.start();
  const [held, arrive] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  fake.way = async (what, value) => {
    if (what !== answer) return value;
    loseNothing();
    held.resolve();
    await arrive.promise;
    return value;
  };
  const call = slow.tab.fetch('/pods');
  await held.promise;
  await quick.tab.fetch('/pods');
  lose(answer);
  await expect(quick.tab.fetch('/pods')).rejects.toThrow(RefreshFailed);
  loseNothing();
  arrive.resolve();
  await call;
  await quick.tab.fetch('/pods');
  const [own, shared, next, again] = fake.server.attempts.slice(-4);
  expect([shared, again]).toEqual([own, next]);
  expect(next).not.toBe(own);
});

it('replaces what is no id by one', async () => {
  const { tab: only } = tab();
  await only.logIn('ada', 'secret');
  fake.stored.set('atoll-refresh-attempt', 'no id');
  await only.fetch('/pods');
  expect(fake.server.attempts).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)]);
});

it('refreshes and logs out in a page of plain http, whose browser has neither locks nor crypto.randomUUID', async () => {
  const { getRandomValues } = crypto;
  replace('navigator', {});
  replace('crypto', { getRandomValues: getRandomValues.bind(crypto) });
  const { tab: only, told } = tab();
  await only.logIn('ada', 'secret');
  await only.fetch('/pods');
  await only.logOut();
  expect([told, fake.server.attempts]).toEqual([['in as ada', 'out: logged_out'], [expect.any(String)]]);
});
