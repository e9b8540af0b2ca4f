import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { OidcProvider, timeoutFactor, type OidcSecretMethod } from '@atoll/testing';
import { TeamsSettings } from '../teams-settings.js';
import { clientAuthentication } from './client-authentication.js';
import { SsoProviderClients } from './sso-providers.js';

// The provider speaks of what it does for development.
jest.spyOn(console, 'warn').mockImplementation(() => undefined);
jest.spyOn(console, 'info').mockImplementation(() => undefined);

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-sso-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

it.each<[OidcSecretMethod[]]>([
  [['client_secret_basic']],
  [['client_secret_post']],
  [['client_secret_basic', 'client_secret_post']],
])('logs in at a provider that takes the client secret by %j', async (secretMethods) => {
  const provider = await OidcProvider.start('http://localhost:3000/api/user/sso/corp/callback', { secretMethods });
  const ssoFile = join(folder, `${randomUUID()}.json`);
  const client = { client_id: 'atoll', client_secret: 'a secret of the specs' };
  writeFileSync(ssoFile, JSON.stringify({ providers: [{ id: 'corp', issuer: provider.issuer, ...client }] }));
  const clients = new SsoProviderClients(
    Object.assign(new TeamsSettings(), {
      ssoFile,
      ssoPatienceMs: 5_000 * timeoutFactor,
      publicUrl: 'http://localhost:3000',
    }),
  );
  provider.people.set('ada', { sub: 'ada' });
  const secrets = { state: 'state', nonce: 'nonce', verifier: 'v'.repeat(43) };
  const corp = clients.find('corp');
  const { searchParams } = await provider.visit(await clients.urlFor(corp, secrets), 'ada');
  expect(await clients.claims(corp, Object.fromEntries(searchParams), secrets)).toMatchObject({ subject: 'ada' });
  await provider.stop();
});

it('sends the client secret by HTTP Basic where the provider lists no method, as the standard has it', () => {
  const [body, headers] = [new URLSearchParams(), new Headers()];
  clientAuthentication('s:1')({ issuer: 'https://id.example.com' }, { client_id: 'atoll' }, body, headers);
  expect([headers.get('authorization'), body.toString()]).toEqual([`Basic ${btoa('atoll:s%3A1')}`, '']);
});
