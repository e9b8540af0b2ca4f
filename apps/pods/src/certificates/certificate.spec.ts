import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { exposedServices } from '@atoll/contracts/pods';
import { Logger } from '@nestjs/common';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { say } from '../exposures/say-fixture.js';
import { PodsFixture } from '../pods-fixture.js';
import { CertificateRenewal } from '../exposures/certificate-renewal.js';
import { Certificates } from './certificates.js';
import { selfSigned } from './self-signed.js';
import { service } from '../service.js';
import { PodsSettings } from '../pods-settings.js';

it('the operator’s certificate is served, and the next one when its files have changed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-tls-'));
  const [tlsCert, tlsKey] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  const write = async (name: string) => {
    const { certificate, key } = await selfSigned(name, 30);
    await writeFile(tlsCert, certificate);
    await writeFile(tlsKey, key);
  };
  await write('one.example.com');
  const own = await PodsFixture.start({ tlsCert, tlsKey });
  try {
    const ours = await own.team();
    const target = await own.running(ours);
    const input = {
      pod_name: target.pod_name,
      service_name: 'tls',
      port: 80,
      protocol: 'TCP' as const,
      ssl_enabled: true,
    };
    const service = await own.untilExposed(
      await own.call(exposedServices.expose, input, ours.member),
      ({ status }) => status === 'active',
    );
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

  const writeNew = async () => {
    const { certificate, key } = await selfSigned('one.example.com', 30);
    await Promise.all([write(tlsCert, certificate), write(tlsKey, key)]);
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'atoll-tls-'));
    [tlsCert, tlsKey] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
    await writeNew();
    own = await PodsFixture.start({ tlsCert, tlsKey });
  });
  beforeEach(async () => {
    await writeNew();
    jest
      .spyOn(own.get(ExposureSteps), 'touch')
      .mockImplementation((_, ids) => Promise.resolve(void touched.push([...ids])));
    jest.spyOn(Logger.prototype, 'warn').mockImplementation((message) => void logged.push(String(message)));
    await look();
    touched.length = logged.length = 0;
  });
  afterEach(() => void jest.restoreAllMocks());
  afterAll(async () => {
    await own.stop();
    await rm(folder, { recursive: true });
  });

  it('once, also where the step of a service was the first to read them', async () => {
    const { certificate, key } = await selfSigned('two.example.com', 30);
    await Promise.all([write(tlsCert, certificate), write(tlsKey, key)]);
    await own.get(Certificates).of('any');
    await look();
    await look();
    expect(touched).toEqual([[]]);
  });

  it('not of a key that belongs to another certificate, of which one line is logged', async () => {
    await write(tlsKey, (await selfSigned('two.example.com', 30)).key);
    for (let times = 0; times < 3; times += 1) await look();
    expect([touched, logged]).toEqual([[], [expect.stringContaining('services keep the last certificate')]]);
    const { certificate, key } = await selfSigned('three.example.com', 30);
    await Promise.all([write(tlsCert, certificate), write(tlsKey, key)]);
    await look();
    expect(touched).toEqual([[]]);
  });

  it('not of files that are away: each time this begins one line names the file and why, and services keep the certificate', async () => {
    const files = await Promise.all([tlsCert, tlsKey].map((file) => readFile(file, 'utf8')));
    const { certificate } = await own.get(Certificates).of('any');
    for (const missing of [tlsCert, tlsCert, tlsKey]) {
      await rm(missing);
      for (let times = 0; times < 3; times += 1) await look();
      expect((await own.get(Certificates).of('any')).certificate).toBe(certificate);
      await Promise.all([tlsCert, tlsKey].map((file, at) => write(file, files[at] ?? '')));
      await look();
    }
    const [cert, key] = [`ATOLL_TLS_CERT: ${tlsCert}`, `ATOLL_TLS_KEY: ${tlsKey}`];
    expect(logged).toEqual(
      [cert, cert, key].map(
        (file) => `${file} cannot be read: no such file or directory. Exposed services keep the last certificate.`,
      ),
    );
  });

  it('again where they could not be told', async () => {
    const { certificate, key } = await selfSigned('two.example.com', 30);
    await Promise.all([write(tlsCert, certificate), write(tlsKey, key)]);
    jest.spyOn(own.get(ExposureSteps), 'touch').mockRejectedValueOnce(new Error('gone'));
    await look();
    await look();
    expect(touched).toEqual([[]]);
  });
});

it('where the files have been away from the start, a service waits and says so, without an error in the log, and opens when they come', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-tls-'));
  const [tlsCert, tlsKey] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  const own = await PodsFixture.start({ tlsCert, tlsKey });
  try {
    const ours = await own.team();
    const target = await own.running(ours);
    const input = {
      pod_name: target.pod_name,
      service_name: 'tls',
      port: 80,
      protocol: 'TCP' as const,
      ssl_enabled: true,
    };
    const asked = await own.call(exposedServices.expose, input, ours.member);
    const waiting = await own.untilExposed(asked, ({ error }) => error !== undefined);
    const message = 'The certificate of exposed services cannot be read at the moment.';
    expect(waiting).toMatchObject({ status: 'provisioning', error: { code: 'unavailable', message } });
    const { certificate, key } = await selfSigned('one.example.com', 30);
    await Promise.all([writeFile(tlsCert, certificate), writeFile(tlsKey, key)]);
    await own.untilExposed(waiting, ({ status }) => status === 'active');
  } finally {
    await own.stop();
    await rm(folder, { recursive: true });
  }
});

describe('a start is refused', () => {
  let folder: string;
  const at = (name: string) => join(folder, name);
  const start = (tlsCert?: string, tlsKey?: string) =>
    Promise.all(
      (service.checks?.(Object.assign(new PodsSettings(), { tlsCert, tlsKey })) ?? []).map((check) => check()),
    );

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'atoll-tls-'));
    const [one, other] = [await selfSigned('one.example.com', 30), await selfSigned('one.example.com', 30)];
    const files = { 'tls.crt': one.certificate, 'tls.key': one.key, 'other.key': other.key, text: 'hunter2' };
    await Promise.all(Object.entries(files).map(([name, text]) => writeFile(at(name), text)));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('not with a certificate and its key', async () => {
    await expect(start(at('tls.crt'), at('tls.key'))).resolves.toBeDefined();
  });

  it.each([
    ['tls.crt', undefined, 'ATOLL_TLS_CERT needs ATOLL_TLS_KEY: set both, or neither.'],
    [undefined, 'tls.key', 'ATOLL_TLS_KEY needs ATOLL_TLS_CERT: set both, or neither.'],
    ['nope', 'tls.key', 'ATOLL_TLS_CERT: /nope cannot be read: no such file or directory.'],
    ['tls.crt', 'nope', 'ATOLL_TLS_KEY: /nope cannot be read: no such file or directory.'],
    [
      'nope',
      'neither',
      'ATOLL_TLS_CERT: /nope cannot be read: no such file or directory. ATOLL_TLS_KEY: /neither cannot be read: no such file or directory.',
    ],
    ['', 'tls.key', 'ATOLL_TLS_CERT:  cannot be read: it is not a file.'],
    ['text', 'tls.key', 'ATOLL_TLS_CERT: /text contains no PEM certificate.'],
    ['tls.crt', 'text', 'ATOLL_TLS_KEY: /text holds no private key in PEM without a passphrase.'],
    [
      'tls.crt',
      'other.key',
      'ATOLL_TLS_KEY: /other.key is not the private key of the certificate of ATOLL_TLS_CERT, /tls.crt.',
    ],
  ])('with %s and %s: the sentence names variable, file and cause', async (cert, key, sentence) => {
    const refused = Promise.resolve().then(() =>
      start(cert === undefined ? cert : at(cert), key === undefined ? key : at(key)),
    );
    await expect(refused.catch((error: Error) => error.message.replaceAll(folder, ''))).resolves.toBe(sentence);
  });
});
