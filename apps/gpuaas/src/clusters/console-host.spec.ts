import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { clusters } from '@atoll/contracts/gpuaas';
import { Logger } from '@nestjs/common';
import { errorOf, GpuaasFixture } from '../gpuaas-fixture.js';
import { aGpuaas } from './cluster-fixture.js';
import { isConsoleHost } from './console-host.js';
import { EngineFixture } from './engine-fixture.js';

describe('a host', () => {
  it.each([
    ['atoll.example.com', 'https://atoll.example.com'],
    ['Atoll.Example.COM', 'https://atoll.example.com:8443'],
    ['atoll.example.com.', 'http://atoll.example.com:3000'],
    ['atoll.example.com', 'https://atoll.example.com.'],
    ['::1', 'https://[::1]:3000'],
    ['2001:DB8:0:0::7', 'https://[2001:db8::7]'],
    ['127.0.0.1', 'http://127.0.0.1:3000'],
    ['127.1', 'http://127.0.0.1:3000'],
    ['localhost', 'http://localhost:3000'],
  ])('%s gets the cookies of %s', (host, publicUrl) => expect(isConsoleHost(host, publicUrl)).toBe(true));

  it.each([
    ['127.0.0.1', 'http://localhost:3000'],
    ['localhost', 'http://127.0.0.1:3000'],
    ['::1', 'http://localhost:3000'],
    ['pods.atoll.example.com', 'https://atoll.example.com'],
    ['example.com', 'https://atoll.example.com'],
    ['203.0.113.7', 'https://atoll.example.com'],
    [':::', 'https://[::1]'],
  ])('%s gets none of %s', (host, publicUrl) => expect(isConsoleHost(host, publicUrl)).toBe(false));
});

describe('a container engine at the host of the console', () => {
  let engine: EngineFixture;
  let fixture: GpuaasFixture;
  beforeAll(async () => {
    engine = await EngineFixture.start();
    fixture = await GpuaasFixture.start({ dockerSockets: engine.socket, publicUrl: 'https://atoll.example.com' });
  });
  afterAll(async () => {
    await fixture?.stop();
    await engine?.stop();
  });
  const docker = (public_host?: string) => ({
    driver: 'docker' as const,
    socket: engine.socket,
    ...(public_host !== undefined && { public_host }),
  });

  it('is refused, and any other is not: the pods would get the cookies of whoever opens their services', async () => {
    const gpuaas_id = await aGpuaas(fixture);
    const error = await errorOf(fixture.call(clusters.set, { gpuaas_id, ...docker('ATOLL.example.com') }));
    expect([error.code, error.details]).toMatchObject([
      'invalid_input',
      {
        errors: [
          {
            path: 'public_host',
            message: expect.stringMatching(
              /^public_host must be another host than that of ATOLL_PUBLIC_URL: .*; use another name/,
            ),
          },
        ],
      },
    ]);
    expect((await fixture.call(clusters.get, { gpuaas_id })).driver).toBe('simulated');
    for (const public_host of ['pods.atoll.example.com', '203.0.113.7'])
      expect((await fixture.call(clusters.set, { gpuaas_id, ...docker(public_host) })).public_host).toBe(public_host);
    // A simulated pod runs nothing that a tenant wrote.
    const simulated = await fixture.call(clusters.set, {
      gpuaas_id,
      driver: 'simulated',
      public_host: 'atoll.example.com',
    });
    expect(simulated.public_host).toBe('atoll.example.com');
  });

  it('is refused also where it is the default', async () => {
    const local = await GpuaasFixture.start({ dockerSockets: engine.socket, publicUrl: 'http://127.0.0.1:3000' });
    const gpuaas_id = await aGpuaas(local);
    const error = await errorOf(local.call(clusters.set, { gpuaas_id, ...docker() }));
    expect(error.details).toMatchObject({ errors: [{ path: 'public_host' }] });
    expect((await local.call(clusters.set, { gpuaas_id, ...docker('localhost') })).public_host).toBe('localhost');
    await local.stop();
  });

  it('goes on working where it was set before, and each start warns of it once', async () => {
    const [first, second, other] = [await aGpuaas(fixture), await aGpuaas(fixture), await aGpuaas(fixture)];
    for (const gpuaas_id of [first, second])
      await fixture.call(clusters.set, { gpuaas_id, ...docker('gpu.example.com') });
    await fixture.call(clusters.set, { gpuaas_id: other, ...docker('203.0.113.7') });
    const warnings: unknown[] = [];
    const spy = jest.spyOn(Logger.prototype, 'warn').mockImplementation((line: unknown) => void warnings.push(line));
    const publicUrl = 'https://gpu.example.com';
    const replica = await GpuaasFixture.start({ replicaOf: fixture, dockerSockets: engine.socket, publicUrl });
    spy.mockRestore();
    const about = warnings.filter((line) => String(line).includes('ATOLL_PUBLIC_URL'));
    expect(about).toEqual([expect.stringContaining(`GPU service ${first}, ${second} must be another host`)]);
    expect((await replica.call(clusters.check, { gpuaas_id: first })).status).toBe('ok');
    await replica.stop();
  });
});
