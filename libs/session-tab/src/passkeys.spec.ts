import { beforeEach, describe, expect, it } from '@jest/globals';
import { fake, replace, tab, useFakeBrowser } from './fake-browser-fixture.js';
import { NoPasskeys } from './session-tab.js';

useFakeBrowser();

describe('a passkey', () => {
  const begin = '/user/passkeys/begin';
  const finish = '/user/passkeys/finish';
  async function add(): Promise<Response> {
    const { tab: only } = tab();
    await only.logIn('ada', 'secret');
    return only.addPasskey('Laptop');
  }
  beforeEach(() => {
    fake.server.lifeS = 3600;
    fake.server.answers.set(begin, { status: 200, body: { challenge_id: 'c', options: '{}' } });
    fake.server.answers.set('/user/login/passkey/begin', { status: 200, body: { challenge_id: 'c', options: '{}' } });
  });

  it('is added by the answer of the device', async () => {
    expect((await add()).status).toBe(200);
    expect(fake.server.calls).toEqual(['/user/login', begin, finish]);
    // A name that is good for nothing is refused before the device makes a passkey.
    expect(fake.server.bodies.at(-2)).toEqual({ name: 'Laptop' });
    expect(fake.server.bodies.at(-1)).toEqual({ challenge_id: 'c', credential: '{"id":"a-passkey"}', name: 'Laptop' });
  });

  it.each([
    [begin, ['/user/login', begin]],
    [finish, ['/user/login', begin, finish]],
  ])('that is refused at %s is not added, and the page gets the refusal', async (path, calls) => {
    fake.server.answers.set(path, { status: 403, body: { code: 'forbidden' } });
    const response = await add();
    expect([response.status, await response.json(), fake.server.calls]).toEqual([403, { code: 'forbidden' }, calls]);
  });

  it('that the device does not give ends with what the browser says, and no call', async () => {
    fake.device = () => Promise.reject(new DOMException('cancelled', 'NotAllowedError'));
    await expect(add()).rejects.toMatchObject({ name: 'NotAllowedError' });
    await expect(tab().tab.logInWithPasskey()).rejects.toMatchObject({ name: 'NotAllowedError' });
    expect(fake.server.calls).toEqual(['/user/login', begin, '/user/login/passkey/begin']);
  });

  it.each(['navigator', 'PublicKeyCredential'] as const)(
    'needs a browser that has %s: the server is asked for nothing',
    async (part) => {
      replace(part, part === 'navigator' ? {} : undefined);
      await expect(add()).rejects.toThrow(NoPasskeys);
      await expect(tab().tab.logInWithPasskey()).rejects.toThrow(NoPasskeys);
      expect(fake.server.calls).toEqual(['/user/login']);
    },
  );
});
