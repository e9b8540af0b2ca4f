import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { exposedServices } from '@atoll/contracts/pods';
import { say } from '../exposures/say-fixture.js';
import { PodsFixture } from '../pods-fixture.js';
import { CertificateRenewal } from '../exposures/certificate-renewal.js';
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
    await write('second.example.com');
    await own.get(CertificateRenewal).look();
    await own.work();
    for (;;) if ((await say(service.url)).certificate?.checkHost('second.example.com')) break;
  } finally {
    await own.stop();
    await rm(folder, { recursive: true });
  }
});
