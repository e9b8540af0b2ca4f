import { expect, it } from '@jest/globals';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  DataFolderEnv,
  HttpEnv,
  loadEnv,
  readSettings,
  ServiceEnv,
  variablesOf,
  type ServiceDefinition,
} from '@atoll/service';
import { createApiKey } from '@atoll/api-keys';
import { Sealer } from '@atoll/seal';
import { PlatformEnv } from './env.js';
import { services } from './services.js';

const needed = {
  ATOLL_KEY_PEPPER: 'a pepper of some length',
  ATOLL_SEAL_KEYS: Sealer.createKeys(),
  ATOLL_BUS_SECRET: 'a secret of some length',
  DATABASE_URL: 'postgres://127.0.0.1/atoll',
};

/** Why a service would not start; `every`: what all of them read in processes of their own. */
async function refusal(name: string, given: Record<string, string>): Promise<string> {
  const all = [{ name: 'every', settings: ServiceEnv }, ...services];
  const service = all.find((one) => one.name === name) as ServiceDefinition;
  return readSettings([service], { ...needed, ...given }).then(
    () => 'accepted',
    (error: Error) => error.message.replace('Invalid environment variables:\n  ', ''),
  );
}

const http = 'must be an http or https URL, such as http://user:password@host.example.com';
const key =
  'must be a key that "npm run admin-key -- --print" makes: atl_ and 38 letters or digits, of which the last six are a checksum';
const url = 'must be a URL such as https://atoll.example.com, in lower case and without a path';
const smtp =
  'must be a URL such as smtp://user:password@mail.example.com:587; percent-encode special characters in its password';
const database =
  'must be a URL such as postgres://user:password@db.example.com:5432/atoll; percent-encode special characters in its password';
const secrets = 'must be one or more secrets of at least 16 characters, separated by commas';
const nats =
  'must be one or more URLs with nats:// or tls://, such as nats://user:password@nats.example.com:4222, separated by commas';
const longEnough = 's'.repeat(16);
const host = 'must be a host name or an IP address';
const image = 'must be an image reference such as docker.io/library/nginx:1.29';
const sockets = 'must be absolute paths, comma-separated, such as /var/run/docker.sock';
const mailbox = 'must be an address such as atoll@example.com, or Atoll <atoll@example.com>';
const keys = 'must be id:key, comma-separated, each key 32 bytes in base64; entry 1 is not';
const currency = 'must be a currency of ISO 4217, in three capital letters such as USD';

it.each([
  [
    'pods',
    'LOKI_URL',
    ['loki:3100', 'foo', 'ftp://loki'],
    `${http}:3100`,
    ['http://loki:3100', 'https://user:secret@127.0.0.1/loki'],
  ],
  [
    'gpuaas',
    'ATOLL_PROMETHEUS_URL',
    ['prometheus:9090', 'foo'],
    `${http}:9090`,
    ['http://prometheus:9090', 'http://[::1]:9090'],
  ],
  ['pods', 'ATOLL_SIMULATED_HOST', ['bad host', 'localhost'], 'must be an IP address', ['127.0.0.1', '0.0.0.0']],
  ['gpuaas', 'ATOLL_SIMULATED_HOST', ['bad host'], 'must be an IP address', ['203.0.113.7']],
  ['pods', 'ATOLL_SSH_PUBLIC_HOST', ['bad host', 'http://a'], host, ['ssh.example.com', '::1']],
  ['gpuaas', 'ATOLL_DOCKER_PUBLIC_HOST', ['bad host'], host, ['gpu.example.com', '203.0.113.7']],
  [
    'gpuaas',
    'ATOLL_DOOR_IMAGE',
    ['!!'],
    image,
    ['localhost/atoll-door:1', 'registry.example.com:5000/door@sha256:' + '0'.repeat(64)],
  ],
  [
    'gpuaas',
    'ATOLL_DOCKER_SOCKETS',
    // The last takes hours where each path doubles the time.
    ['relative/path', '/run/a.sock,b', `${'/run/user/1000/docker.sock,'.repeat(40)}x`],
    sockets,
    ['/run/a.sock', ' /run/a.sock , /run/b.sock,'],
  ],
  ['gpuaas', 'ATOLL_SEAL_KEYS', ['zz', 'k1:c2hvcnQ='], keys, [`k2:${'A'.repeat(43)}=, ${needed.ATOLL_SEAL_KEYS}`]],
  ['teams', 'ATOLL_SEAL_KEYS', ['zz'], keys, []],
  ['pods', 'ATOLL_SEAL_KEYS', ['k1:zz'], keys, []],
  [
    'teams',
    'ATOLL_MAIL_FROM',
    ['nope', 'Atoll <nope>', 'a@b.c, d@e.f'],
    mailbox,
    ['a@localhost', 'Atoll Inc. <a@b.c>', '"Atoll, Inc." <a@b.c>'],
  ],
  ['billing', 'ATOLL_CURRENCY', ['XXZ', 'usd', 'dollars'], currency, ['USD', 'JPY', 'KWD']],
  ['teams', 'ATOLL_ADMIN_KEY', ['short', `atl_${'a'.repeat(38)}`], key, [createApiKey()]],
  ...['teams', 'gpuaas'].map(
    (service) =>
      [
        service,
        'ATOLL_PUBLIC_URL',
        ['http://h:99999', 'http://1.2.3.999', 'http://Atoll', 'ftp://h', 'http://h/', 'h'],
        url,
        ['http://localhost:65535', 'https://[::1]:3000', 'https://atoll.example.com'],
      ] as const,
  ),
  [
    'teams',
    'SMTP_URL',
    ['smtp://h:99999', 'smtp://', 'smtp://u:1/w@h:25', 'smtp://u:1?w@h:25', 'smtp://u:1#w@h', 'http://h'],
    smtp,
    ['smtp://mail', 'smtps://u:p@ss@mail:465', 'smtp://u:p%40ss@[::1]:25', 'smtp://mail:587?pool=true'],
  ],
  [
    'every',
    'DATABASE_URL',
    [
      ...['postgres://', 'postgres://127.0.0.1:5432', 'mysql://h/x', 'postgres://h:99999/x', 'postgres://u:p@:1/x'],
      ...['postgres://a:p@ss/w#d@127.0.0.1:5020/x', 'postgres://a:p@ss/w@h/x', 'postgres://a:1?w@h/x'],
      ...['postgres://a:p@ss/w?d=e@h/x', 'postgres://a:1#w@h/x', 'postgres://a:p%E0x@h/x'],
    ],
    database,
    [
      ...['postgres://127.0.0.1/atoll', 'postgresql://u@h:5432/x', 'postgres://u:p%40%2F%23@[::1]:5/x'],
      ...['postgres://u:p@ss@h/x', 'postgres://u:p@h', 'postgres://h/x?sslmode=disable&connect_timeout=7'],
      ...['postgres:///x?host=/run/postgresql', 'postgres://u@/x?host=/run', 'postgres://%2Frun%2Fpg/x'],
    ],
  ],
  ['every', 'ATOLL_BUS_SECRET', [`${longEnough}xyz,bbb`, `${longEnough},`], `${secrets}; entry 2 is not`, [longEnough]],
  [
    'every',
    'ATOLL_BUS_SECRET',
    [`,${longEnough}`, 'short', `${' '.repeat(16)}bbb`],
    `${secrets}; entry 1 is not`,
    [`${longEnough}, ${longEnough}`],
  ],
  [
    'every',
    'NATS_URL',
    [
      ...['nats://h:99999', 'nats://', 'tls://', ',', 'http://x', 'wss://x', 'nats://u:p%E0x@h', 'nats://u:1/w@h'],
      'nats://u:1#w@h:4222',
    ],
    `${nats}; entry 1 is not`,
    ['h', 'h:4222, tls://[::1]:4223', 'nats://u:p@ss@h:4222', 'nats://token@h,nats://i'],
  ],
  ['every', 'NATS_URL', ['nats://h,', 'nats://h, h:99999'], `${nats}; entry 2 is not`, []],
  ['pods', 'ATOLL_SSH_PORT', ['x', '65536'], 'must be a port from 0 to 65535, or off', ['off', '0', '65535']],
])('%s: %s is checked, and the sentence names it', async (service, variable, wrong, sentence, right) => {
  const refusals = (values: readonly string[]) =>
    Promise.all(values.map(async (value) => [value, await refusal(service, { [variable]: value })]));
  expect(await refusals(wrong)).toEqual(wrong.map((value) => [value, `${variable} ${sentence}`]));
  expect(await refusals(right)).toEqual(right.map((value) => [value, 'accepted']));
});

it('each setting that is a number says its whole range', async () => {
  const range = /^[A-Z_]+ must be a (?:whole )?number (?:of \w+ )?from [\d.]+ to \d+$/;
  for (const { name, settings } of services) {
    for (const [property, variable] of variablesOf(settings)) {
      if (typeof Reflect.get(new settings(), property) !== 'number') continue;
      for (const value of ['x', '1e3', '-1', '99999999999'])
        expect(await refusal(name, { [variable]: value })).toMatch(range);
    }
  }
  for (const variable of ['PORT', 'HEALTH_PORT', 'ATOLL_DEADLINE_MS', 'ATOLL_EVENTS_MAX_MIB']) {
    const type = [HttpEnv, ServiceEnv].find((one) => [...variablesOf(one).values()].includes(variable));
    const given = { ATOLL_BUS_SECRET: 'a secret of some length', DATABASE_URL: 'postgres://h/x', [variable]: 'x' };
    expect(() => loadEnv<object>(type ?? HttpEnv, given)).toThrow(new RegExp(range.source.slice(1, -1)));
  }
});

it.each([
  ['teams', ['DATABASE_URL', 'ATOLL_BUS_SECRET', 'ATOLL_KEY_PEPPER', 'ATOLL_SEAL_KEYS']],
  ['billing', ['DATABASE_URL', 'ATOLL_BUS_SECRET']],
  ['gpuaas', ['DATABASE_URL', 'ATOLL_BUS_SECRET']],
  ['pods', ['DATABASE_URL', 'ATOLL_BUS_SECRET', 'ATOLL_SEAL_KEYS']],
])('%s in a process of its own names all that is missing at once', async (name, missing) => {
  const process = [{ settings: ServiceEnv }, ...services.filter((one) => one.name === name)];
  const rules: Record<string, string> = {
    ATOLL_BUS_SECRET: secrets,
    DATABASE_URL: database,
    ATOLL_KEY_PEPPER: 'must be at least 16 characters long',
    ATOLL_SEAL_KEYS: 'must be id:key, comma-separated, each key 32 bytes in base64',
  };
  const lines = missing.map((variable) => `  ${variable} is missing: it ${rules[variable]}`);
  for (const source of [{}, Object.fromEntries(missing.map((variable) => [variable, '']))])
    await expect(readSettings(process, source)).rejects.toThrow(
      new Error(['Invalid environment variables:', ...lines].join('\n')),
    );
});

it('a database is named by its scheme, in one process too', () => {
  expect(() => loadEnv(PlatformEnv, { DATABASE_URL: 'database:5432' })).toThrow(`DATABASE_URL ${database}`);
});

it('what needs another setting, a file or an address of the machine is refused before anything is started', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-settings-'));
  const file = join(folder, 'sso.json');
  writeFileSync(file, '{"providers": {}}');
  expect(await refusal('teams', { ATOLL_SSO_FILE: file })).toBe('ATOLL_SSO_FILE: providers must be a list.');
  rmSync(folder, { recursive: true });
  expect(await refusal('teams', { ATOLL_SSO_FILE: file })).toContain(`ATOLL_SSO_FILE: ${file} cannot be read`);
  expect(await refusal('gpuaas', { ATOLL_CLUSTER: 'docker' })).toContain(
    'ATOLL_CLUSTER=docker needs ATOLL_DOCKER_SOCKETS',
  );
  expect(await refusal('gpuaas', { ATOLL_CLUSTER: 'docker', ATOLL_DOCKER_SOCKETS: '/run/a.sock' })).toBe('accepted');
  const engine = { ATOLL_CLUSTER: 'docker', ATOLL_DOCKER_SOCKETS: '/run/a.sock' };
  for (const [url, host] of [
    ['https://atoll.example.com', 'Atoll.example.com'],
    ['http://127.0.0.1:3000', undefined],
  ] as const) {
    const given = { ATOLL_PUBLIC_URL: url, ...(host && { ATOLL_DOCKER_PUBLIC_HOST: host }) };
    expect(await refusal('gpuaas', { ...engine, ...given })).toMatch(
      /^ATOLL_DOCKER_PUBLIC_HOST must be another host than that of ATOLL_PUBLIC_URL: .*; use another name, or the address/,
    );
    expect(await refusal('gpuaas', given)).toBe('accepted');
    expect(await refusal('gpuaas', { ...engine, ...given, ATOLL_DOCKER_PUBLIC_HOST: '203.0.113.7' })).toBe('accepted');
  }
  expect(await refusal('pods', { ATOLL_EXPOSED_PORTS: '5-4' })).toContain(
    'ATOLL_EXPOSED_PORTS must be from a lower to a higher port',
  );
  for (const variable of ['ATOLL_SIMULATED_HOST', 'ATOLL_TERMINAL_HOST']) {
    expect(await refusal('pods', { [variable]: '203.0.113.7' })).toContain(
      `${variable} is "203.0.113.7", which is no address of this machine`,
    );
  }
});

it('the data folder is a folder, or is none yet', () => {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-settings-'));
  const file = join(folder, 'file');
  writeFileSync(file, '');
  for (const path of [folder, join(folder, 'none', 'yet')])
    expect(loadEnv(DataFolderEnv, { ATOLL_DATA_DIR: path }).dataDir).toBe(path);
  for (const path of [file, join(file, 'none')])
    expect(() => loadEnv(DataFolderEnv, { ATOLL_DATA_DIR: path })).toThrow(
      /^ {2}ATOLL_DATA_DIR must be a folder, or a path at which one can be created: a file is in the way$/m,
    );
  rmSync(folder, { recursive: true });
});
