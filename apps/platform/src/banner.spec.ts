import { expect, it } from '@jest/globals';
import { banner } from './banner.js';

const facts = {
  url: 'http://127.0.0.1:3000',
  publicUrl: 'http://localhost:3000',
  readyAfterMs: 1_900,
  dataDir: '/tmp',
  cluster: 'simulated',
  adminKey: undefined,
  acceptsBroughtKey: false,
  adminLink: undefined,
};

it('leads people to the public address, where passkeys work, and programs to where the platform listens', () => {
  const text = banner(facts);
  expect(text).toMatch(/Console {6}http:\/\/localhost:3000\/$/m);
  expect(text).toMatch(/API {10}http:\/\/127\.0\.0\.1:3000\/api$/m);
});

it('says which key is that of the operator', () => {
  const keyIn = (given: Partial<typeof facts>) => /Admin key {4}(.*)$/m.exec(banner({ ...facts, ...given }))?.[1];
  expect(keyIn({})).toMatch(/^as printed at the first start\. .*npm run admin-key/);
  expect(keyIn({ acceptsBroughtKey: true })).toBe('the one in ATOLL_ADMIN_KEY.');
});
