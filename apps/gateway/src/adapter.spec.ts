import dns from 'node:dns';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it, jest } from '@jest/globals';
import { startGateway } from './testing/gateway-fixture.js';

afterEach(() => {
  jest.restoreAllMocks();
});

it.each([[['localhost']], [[]]])(
  'listens on one address where its host %j has several: a second server would have no bounds',
  async (host) => {
    const lookup = (name: string, _options: object, callback: (...result: unknown[]) => void): void => {
      const addresses = name === 'localhost' ? ['127.0.0.1', '127.0.0.2'] : [name];
      const found = addresses.map((address) => ({ address, family: 4 }));
      setImmediate(callback, null, found);
    };
    jest.spyOn(dns, 'lookup').mockImplementation(lookup as never);
    const { app, close } = await startGateway();
    await app.listen(0, ...(host as [string]));
    const open = app.getHttpAdapter().getInstance().addresses() as AddressInfo[];
    await close();
    expect(open.map(({ address }) => address)).toEqual(['127.0.0.1']);
  },
);
