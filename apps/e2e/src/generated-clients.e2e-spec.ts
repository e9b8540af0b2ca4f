import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, it } from '@jest/globals';
import { adminKey, fresh, platformUrl } from './client.js';

const run = promisify(execFile);
const clients = ['openapi-fetch', 'hey-api'] as const;
/** In the checkout, so that the generated code finds its packages; no part of it. */
const built = resolve('.tools', 'generated-clients');
/** Of what was built for one document, by one set of packages. */
let folder: string;
const compiler = {
  compilerOptions: {
    module: 'nodenext',
    moduleResolution: 'nodenext',
    target: 'esnext',
    lib: ['esnext', 'dom', 'dom.iterable'],
    strict: true,
    skipLibCheck: true,
    types: ['node'],
    outDir: 'built',
    rootDir: '.',
  },
  include: ['*.ts', 'hey/**/*.ts'],
};

interface Told {
  team: string;
  members: string[];
  region: string;
  accepted: number;
  cost: string;
  subscriptionsOfNobody: number;
  refusal: string;
}

/**
 * Generates, compiles and runs the same story with one of the clients; what it prints is what the platform answered.
 */
async function storyOf(client: 'openapi-fetch' | 'hey-api'): Promise<Told> {
  const env = { ...process.env, ATOLL_URL: platformUrl, ATOLL_KEY: adminKey, ATOLL_NAME: fresh('generated') };
  const { stdout } = await run(process.execPath, [`built/${client}.js`], { cwd: folder, env });
  return JSON.parse(stdout) as Told;
}

/** What the clients are made from, file by file. */
async function sources(): Promise<Record<string, string>> {
  const stories = clients.map((client): [string, string] => [
    `${client}.ts`,
    readFileSync(`apps/e2e/src/generated-clients/${client}.story`, 'utf8'),
  ]);
  return {
    'openapi.json': await (await fetch(`${platformUrl}/api/openapi.json`)).text(),
    'tsconfig.json': JSON.stringify(compiler),
    'package.json': '{"type":"module"}',
    ...Object.fromEntries(stories),
  };
}

async function build(draft: string, files: Record<string, string>): Promise<void> {
  const bin = (name: string): string => resolve('node_modules/.bin', name);
  mkdirSync(draft, { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(resolve(draft, name), text);
  await run(bin('openapi-typescript'), ['openapi.json', '--output', 'schema.ts'], { cwd: draft });
  await run(
    bin('openapi-ts'),
    ['--input', 'openapi.json', '--output', 'hey', '--client', '@hey-api/client-fetch', '--silent'],
    {
      cwd: draft,
    },
  );
  await run(bin('tsc'), ['-p', 'tsconfig.json'], { cwd: draft }).catch(({ stdout }: { stdout: string }) => {
    throw new Error(stdout);
  });
}

/**
 * Both topologies have the same document, whose clients are built for the first that is proven; then they call either.
 */
beforeAll(async () => {
  const files = await sources();
  const made = createHash('sha256').update(JSON.stringify(files)).update(readFileSync('package-lock.json'));
  folder = resolve(built, made.digest('hex').slice(0, 32));
  if (existsSync(folder)) return;
  rmSync(built, { recursive: true, force: true });
  // Whole, or not at all.
  const draft = resolve(built, 'draft');
  await build(draft, files);
  renameSync(draft, folder);
});

it.each(clients)('a client generated for %s compiles, and gets what it asks for', async (client) => {
  const told = await storyOf(client);
  expect(told).toEqual({
    team: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
    members: ['team_owner', 'billing_viewer'],
    region: expect.stringMatching(/^[1-9]\d*$/) as unknown,
    accepted: 2,
    cost: '24',
    subscriptionsOfNobody: 0,
    refusal: 'not_found',
  });
});
