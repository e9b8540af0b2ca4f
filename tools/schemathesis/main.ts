import { spawn, spawnSync } from 'node:child_process';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createApiKey } from '@atoll/api-keys';
import { cachePath, startPostgres } from '@atoll/testing';
import { createDatabase } from '../bench/databases.js';
import { Installation } from '../bench/installation.js';

/**
 * `npm run schemathesis`: holds the platform against its OpenAPI document with generated requests, valid and invalid
 * ones. `npm run test:setup` keeps Schemathesis; where it did not, it comes from PyPI into the checkout's `.tools`, and
 * where it cannot be had, one line says so.
 */
const { values } = parseArgs({ options: { 'max-examples': { type: 'string', default: '25' } } });
const sources = resolve('tools/schemathesis');
const requirements = readFileSync(join(sources, 'requirements.txt'), 'utf8');
/** As tools/test-setup.sh names it. */
const kept = cachePath(`schemathesis-${createHash('sha256').update(requirements).digest('hex').slice(0, 16)}`);
const isKept = existsSync(join(kept, 'installed'));
const environment = isKept ? kept : resolve('.tools/schemathesis');
const runFolder = resolve('.tools/schemathesis-run');

/** Why it could not be installed; undefined where it is there. */
function install(): string | undefined {
  if (isKept) return undefined;
  const installed = join(environment, 'requirements.txt');
  if (existsSync(installed) && readFileSync(installed, 'utf8') === requirements) return undefined;
  rmSync(environment, { recursive: true, force: true });
  const python = (...args: string[]) => spawnSync('python3', args, { encoding: 'utf8' });
  const made = python('-m', 'venv', environment);
  if (made.error ?? made.status) return 'python3 with venv is not there (on Debian: apt-get install python3-venv)';
  const pip = spawnSync(
    join(environment, 'bin/pip'),
    [
      'install',
      '--quiet',
      '--no-cache-dir',
      '--disable-pip-version-check',
      '--requirement',
      join(sources, 'requirements.txt'),
    ],
    { encoding: 'utf8' },
  );
  if (pip.error ?? pip.status) return `pip cannot install it: ${pip.stderr.trim().split('\n').at(-1)}`;
  cpSync(join(sources, 'requirements.txt'), installed);
  return undefined;
}

interface World {
  team_id: string;
  workspace_id: string;
  gpuaas_id: string;
  gpu_id: string;
  pool_id: string;
  private_key: string;
}

/** Objects for requests that need some: a team, and a pool of one of the GPUs of a node. */
async function createWorld(platform: Installation): Promise<World> {
  const { region_id } = await platform.send<{ region_id: string }>('POST', '/region', { region_name: 'world' });
  const { gpuaas_id } = await platform.send<{ gpuaas_id: string }>('POST', '/gpuaas', { region_id, name: 'world' });
  const gpus = [{ board: 'A100-80GB', count: 8 }];
  const { node_id } = await platform.send<{ node_id: string }>('POST', '/gpuaas/node', {
    gpuaas_id,
    node_name: 'world',
    gpus,
  });
  await platform.send('POST', `/gpuaas/node/${node_id}/initialise`);
  let node = await platform.send<{ status: string; gpus: { gpu_id: string }[] }>('GET', `/gpuaas/node/${node_id}`);
  while (node.status !== 'ready') {
    await delay(100);
    node = await platform.send('GET', `/gpuaas/node/${node_id}`);
  }
  const [first, second] = node.gpus.map(({ gpu_id }) => gpu_id);
  const terms = {
    gpuaas_id,
    pool_name: 'world',
    gpu_ids: [first],
    sharing_mode: 'Spatial',
    mechanism: 'mig',
    profiles: ['1g.10gb'],
  };
  const { pool_id } = await platform.send<{ pool_id: string }>('POST', '/gpuaas/pool/create', terms);
  const team = await platform.send<{ id: string; workspaces: { id: string }[] }>('POST', '/team', { name: 'World' });
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 3_072 });
  return {
    team_id: team.id,
    workspace_id: team.workspaces[0]?.id ?? '',
    gpuaas_id,
    gpu_id: second ?? '',
    pool_id,
    private_key: privateKey.export({ type: 'pkcs1', format: 'pem' }),
  };
}

/** These two end the key that asks: they come last, and by themselves. */
const ofOwnKeys = ['issueUserKey', 'revokeUserKeys'];
const others = ofOwnKeys.flatMap((id) => ['--exclude-operation-id', id]);
const alone = ofOwnKeys.flatMap((id) => ['--include-operation-id', id]);
/** Runs one after the other on one platform; the shares beside each other, for each takes one processor. */
const shares = [
  [['--phases', 'examples,coverage', ...others]],
  [
    ['--phases', 'fuzzing,stateful', ...others],
    ['--phases', 'examples,coverage,fuzzing', ...alone],
  ],
];

/**
 * Runs Schemathesis, and shows its output when it is over, so that nobody else's stands between; false where it found
 * something.
 */
async function run(
  url: string,
  key: string,
  world: World,
  options: readonly string[],
  folder: string,
): Promise<boolean> {
  const args = [
    ...['--config-file', join(sources, 'schemathesis.toml'), 'run', `${url}/api/openapi.json`],
    ...['--max-examples', values['max-examples'], ...options],
  ];
  mkdirSync(folder, { recursive: true });
  const child = spawn(join(environment, 'bin/st'), args, {
    cwd: folder,
    env: {
      ...process.env,
      ATOLL_OPERATOR_KEY: key,
      ATOLL_WORLD: JSON.stringify(world),
      SCHEMATHESIS_HOOKS: join(sources, 'hooks.py'),
      PYTHONDONTWRITEBYTECODE: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => output.push(chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  process.stdout.write(Buffer.concat(output));
  return code === 0;
}

/** One share of the runs, against a platform of its own. */
async function runShare(databaseUrl: string, name: string, share: readonly (readonly string[])[]): Promise<boolean> {
  const dataDir = mkdtempSync(join(tmpdir(), 'atoll-schemathesis-'));
  try {
    const key = createApiKey();
    const platform = await Installation.start(databaseUrl, dataDir, key);
    try {
      const world = await createWorld(platform);
      let isGood = true;
      for (const options of share)
        isGood = (await run(platform.url, key, world, options, join(runFolder, name))) && isGood;
      return isGood;
    } finally {
      await platform.stop();
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Whether the platform keeps what its document promises, and refuses what it does not. */
async function check(): Promise<boolean> {
  const postgres = await startPostgres();
  try {
    const outcomes = await Promise.allSettled(
      shares.map(async (share, index) => {
        const name = `schemathesis_${index + 1}`;
        return runShare(await createDatabase(postgres.url, name), name, share);
      }),
    );
    const broken = outcomes.find(({ status }) => status === 'rejected');
    if (broken?.status === 'rejected') throw broken.reason;
    return outcomes.every((outcome) => outcome.status === 'fulfilled' && outcome.value);
  } finally {
    await postgres.stop();
  }
}

/** As Automake has it; `npm test` counts it as skipped. */
const notRun = 77;

const missing = install();
if (missing === undefined) {
  process.exitCode = (await check()) ? 0 : 1;
} else {
  console.log(`!!! Schemathesis was NOT RUN: ${missing}.`);
  process.exitCode = notRun;
}
