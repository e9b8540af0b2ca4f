import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { exposedServices } from '@atoll/contracts/pods';
import { Logger } from '@nestjs/common';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { say } from '../exposures/say-fixture.js';
import { PodsFixture } from '../pods-fixture.js';
import { CertificateRenewal } from '../exposures/certificate-renewal.js';
import { Certificates } from './certificates.js';
import { selfSigned } from './self-signed.js';

it('the operator’s certificate is served, and the next one when its files have changed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-tls-'));
  const [tlsCert, tlsKey] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  const write = async (name: string) => {
    const { certificate, key } = selfSigned(name, 30);
    await writeFile(tlsCert, certificate);
    await writeFile(tlsKey, key);
  };
  await write('one.example.com');
  const own = await PodsFixture.start({ tlsCert, tlsKey });
  try {
    const ours = await own.team();
    const target = await own.running(ours);
    const input = { pod_name: target.pod_name, service_name: 'tls', port: 80, protocol: 'TCP' as const, ssl_enabled: true };
    const service = await own.untilExposed(await own.call(exposedServices.expose, input, ours.member), ({ status }) => status === 'active');
    expect((await say(service.url)).certificate?.checkHost('one.example.com')).toBe('one.example.com');
    await own.get(CertificateRenewal).look();
    await write('second.example.com');
    await own.get(CertificateRenewal).look();
    await own.work();
    for (;;) if ((await say(service.url)).certificate?.checkHost('second.example.com')) break;
  } finally {
    await own.stop();
    await rm(folder, { recursive: true });
  }
});

describe('when files change, services are told', () => {
  let folder: string;
  let own: PodsFixture;
  let tlsCert: string;
  let tlsKey: string;
  const touched: string[][] = [];
  const logged: string[] = [];
  const write = async (file: string, text: string) => {
    // Another file by the same name: whatever the resolution of its times is.
    await rm(file, { force: true });
    await writeFile(file, text);
  };
  const look = () => own.get(CertificateRenewal).look();

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'atoll-tls-'));
    [tlsCert, tlsKey] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
    const { certificate, key } = selfSigned('one.example.com', 30);
    await Promise.all([write(tlsCert, certificate), write(tlsKey, key)]);
    own = await PodsFixture.start({ tlsCert, tlsKey });
    jest.spyOn(own.get(ExposureSteps), 'touch').mockImplementation((_, ids) => Promise.resolve(void touched.push([...ids])));
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((message) => void logged.push(String(message)));
    touched.length = logged.length = 0;
    await look();
  });
  afterEach(async () => {
    jest.restoreAllMocks();
    await own.stop();
    await rm(folder, { recursive: true });
  });

  it('once, also where the step of a service was the first to read them', async () => {
    const { certificate, key } = selfSigned('two.example.com', 30);
    await Promise.all([write(tlsCert, certificate), write(tlsKey, key)]);
    await own.get(Certificates).of('any');
    await look();
    await look();
    expect(touched).toEqual([[]]);
  });

  it('not of a key that belongs to another certificate, of which one line is logged', async () => {
    await write(tlsKey, selfSigned('two.example.com', 30).key);
    for (let times = 0; times < 3; times += 1) await look();
    expect([touched, logged]).toEqual([[], [expect.stringContaining('services keep the last one')]]);
    const { certificate, key } = selfSigned('three.example.com', 30);
    await Promise.all([write(tlsCert, certificate), write(tlsKey, key)]);
    await look();
    expect(touched).toEqual([[]]);
  });

  it('again where they could not be told', async () => {
    const { certificate, key } = selfSigned('two.example.com', 30);
    await Promise.all([write(tlsCert, certificate), write(tlsKey, key)]);
    jest.spyOn(own.get(ExposureSteps), 'touch').mockRejectedValueOnce(new Error('gone'));
    await look();
    await look();
    expect(touched).toEqual([[]]);
  });
});
