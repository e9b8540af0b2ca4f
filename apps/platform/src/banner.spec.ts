import { expect, it } from '@jest/globals';
import { banner } from './banner.js';

it('leads people to the public address, where passkeys work, and programs to where the platform listens', () => {
  const text = banner({
    ...{
      url: 'http://127.0.0.1:3000',
      publicUrl: 'http://localhost:3000',
      readyAfterMs: 1_900,
      dataDir: '/tmp',
      cluster: 'simulated',
    },
    ...{ adminKey: undefined, adminLink: undefined },
  });
  expect(text).toMatch(/Console {6}http:\/\/localhost:3000\/$/m);
  expect(text).toMatch(/API {10}http:\/\/127\.0\.0\.1:3000\/api$/m);
});
