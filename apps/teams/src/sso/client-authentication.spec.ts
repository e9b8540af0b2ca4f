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

function sentTo(token_endpoint_auth_methods_supported?: string[]) {
  const [body, headers] = [new URLSearchParams(), new Headers()];
  const server = {
    issuer: 'https://id.example.com',
    ...(token_endpoint_auth_methods_supported && { token_endpoint_auth_methods_supported }),
  };
  clientAuthentication('s:1')(server, { client_id: 'atoll' }, body, headers);
  return [headers.get('authorization'), body.toString()];
}

it('sends the client secret in the body where the provider lists that, since not all decode what Basic encodes', () => {
  for (const methods of [['client_secret_post'], ['client_secret_basic', 'client_secret_post']])
    expect(sentTo(methods)).toEqual([null, 'client_id=atoll&client_secret=s%3A1']);
});

it('sends the client secret by HTTP Basic where the provider lists no method, as the standard has it', () => {
  for (const methods of [undefined, ['client_secret_basic']])
    expect(sentTo(methods)).toEqual([`Basic ${btoa('atoll:s%3A1')}`, '']);
});
