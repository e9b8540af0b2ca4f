import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { adminKey, fresh, platformUrl } from './client.js';

const run = promisify(execFile);
/** In the checkout, so that the generated code finds its packages; no part of it. */
const folder = resolve('.tools', `generated-clients-${process.pid}`);
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

/** Generates, compiles and runs the same story with one of the clients; what it prints is what the platform answered. */
async function storyOf(client: 'openapi-fetch' | 'hey-api'): Promise<Told> {
  const env = { ...process.env, ATOLL_URL: platformUrl, ATOLL_KEY: adminKey, ATOLL_NAME: fresh('generated') };
  const { stdout } = await run(process.execPath, [`built/${client}.js`], { cwd: folder, env });
  return JSON.parse(stdout) as Told;
}

beforeAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const bin = (name: string): string => resolve('node_modules/.bin', name);
  writeFileSync(resolve(folder, 'openapi.json'), await (await fetch(`${platformUrl}/api/openapi.json`)).text());
  writeFileSync(resolve(folder, 'tsconfig.json'), JSON.stringify(compiler));
  writeFileSync(resolve(folder, 'package.json'), '{"type":"module"}');
  for (const client of ['openapi-fetch', 'hey-api']) cpSync(`apps/e2e/src/generated-clients/${client}.story`, `${folder}/${client}.ts`);
  await run(bin('openapi-typescript'), ['openapi.json', '--output', 'schema.ts'], { cwd: folder });
  await run(bin('openapi-ts'), ['--input', 'openapi.json', '--output', 'hey', '--client', '@hey-api/client-fetch', '--silent'], {
    cwd: folder,
  });
  await run(bin('tsc'), ['-p', 'tsconfig.json'], { cwd: folder }).catch(({ stdout }: { stdout: string }) => {
    throw new Error(stdout);
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.each(['openapi-fetch', 'hey-api'] as const)('a client generated for %s compiles, and gets what it asks for', async (client) => {
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
