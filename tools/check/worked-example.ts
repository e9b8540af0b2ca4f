import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { makeServerFolder, removeServerFolder } from '../../libs/testing/src/server-folder.ts';
import { answerProblem, applyDiff, stepsOf, type Step } from './worked-example-steps.ts';

/**
 * Follows "How to add a service" of CONTRIBUTING.md in a copy of the repository: creates and edits files as its blocks
 * say, runs its commands, starts the platform and calls the new service. Fails where the document does not hold.
 */
const chapter = 'How to add a service';
/** The section that ends with a service which has no feature yet, and the most files that it may take. */
const skeleton = { section: 'The skeleton', created: 5, edited: 4 };

const root = new URL('../..', import.meta.url).pathname;
const exec = promisify(execFile);
const maxBuffer = 64 * 2 ** 20;

/** The checks and specs that find in seconds what a new service lacks. */
const ofSkeleton = [
  'node tools/check/projects.ts',
  'node tools/check/file-names.ts',
  'node dist/tools/check/services.js',
];
const ofService = [
  'tsc --noEmit --checkers 1 -p dist/worked-example.json',
  'knip',
  'node dist/tools/check/tables/migration-drift.js announcements',
  'node dist/tools/check/services.js',
  'npm run --silent jest -- --maxWorkers=1 --no-cache apps/announcements apps/platform/src/services.spec.ts',
];

/** The files of a working tree, uncommitted ones included, without those that are ignored. */
async function filesOf(workTree: string): Promise<string[]> {
  const { stdout: repository } = await exec('git', ['rev-parse', '--absolute-git-dir'], { cwd: root });
  const env = { ...process.env, GIT_DIR: repository.trim(), GIT_WORK_TREE: workTree };
  // A link to a folder is not what `node_modules/` in .gitignore means.
  const list = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--exclude=node_modules'];
  const { stdout } = await exec('git', list, { cwd: workTree, env, maxBuffer });
  return stdout.split('\0').filter((path) => path !== '' && existsSync(join(workTree, path)));
}

/** The working tree with its build and the packages that are installed, in memory if there is plenty of it. */
async function copyRepository(): Promise<string> {
  const copy = makeServerFolder();
  // Where this runs as root, PostgreSQL runs as a user of its own and has its data in here.
  chmodSync(copy, 0o755);
  for (const path of [...(await filesOf(root)), 'dist'])
    cpSync(join(root, path), join(copy, path), { recursive: true, preserveTimestamps: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Runs a script as a reader would. Returns what it printed; throws with what it printed. */
async function runScript(script: string, cwd: string, env: Record<string, string> = {}): Promise<string> {
  const path = `${join(cwd, 'node_modules/.bin')}${delimiter}${process.env.PATH ?? ''}`;
  try {
    const options = { cwd, env: { ...process.env, PATH: path, ...env }, maxBuffer };
    return (await exec('bash', ['-euo', 'pipefail', '-c', script], options)).stdout;
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${script}\n${stdout}${stderr}`, { cause: error });
  }
}

interface Platform {
  process: ChildProcess;
  /** What it prints for its first caller. */
  env: { ATOLL_URL: string; ATOLL_KEY: string };
}

/** What `npm start` runs, at any port that is free; but for the build of the console, which is copied. */
async function startPlatform(cwd: string): Promise<Platform> {
  await runScript('node --run compile && node tools/bundle.ts apps/platform/src/main.js', cwd);
  const env = { ...process.env, PORT: '0', ATOLL_DATA_DIR: join(cwd, '.atoll') };
  const started = spawn(process.execPath, ['dist/apps/platform/src/main.js'], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [started.stdout, started.stderr])
    stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  for (;;) {
    const [, url] = /^ +Console +(http\S+)\/$/m.exec(output) ?? [];
    const [, key] = /^ +Admin key +(atl_\w+)$/m.exec(output) ?? [];
    if (url && key) return { process: started, env: { ATOLL_URL: url, ATOLL_KEY: key } };
    if (started.exitCode !== null || started.signalCode !== null) throw new Error(`npm start\n${output}`);
    await delay(50);
  }
}

/** Does what the steps say, one after the other. The platform starts when a script first calls it. */
class Follower {
  private readonly cwd: string;
  private platform: Platform | undefined;
  private printed = '';

  constructor(cwd: string) {
    this.cwd = cwd;
  }

  async follow(step: Step): Promise<void> {
    if (step.kind === 'create') this.create(step.path, step.text);
    else if (step.kind === 'edit')
      this.write(step.path, applyDiff(step.path, readFileSync(join(this.cwd, step.path), 'utf8'), step.diff));
    else if (step.kind === 'run') await this.run(step.script);
    else {
      const problem = answerProblem(this.printed, step.json);
      if (problem) throw new Error(problem);
    }
  }

  async stop(): Promise<void> {
    const started = this.platform?.process;
    if (!started || started.exitCode !== null) return;
    const ended = once(started, 'close');
    started.kill('SIGTERM');
    await ended;
  }

  private async run(script: string): Promise<void> {
    if (script.includes('$ATOLL_URL')) this.platform ??= await startPlatform(this.cwd);
    this.printed = await runScript(script, this.cwd, this.platform?.env);
  }

  private create(path: string, text: string): void {
    if (existsSync(join(this.cwd, path))) throw new Error(`${path} is there already, and not new`);
    mkdirSync(dirname(join(this.cwd, path)), { recursive: true });
    this.write(path, text);
  }

  private write(path: string, text: string): void {
    writeFileSync(join(this.cwd, path), text);
  }
}

/** Paths of files that the repository does not have, and of files that differ there. */
async function changesIn(copy: string): Promise<{ created: string[]; edited: string[] }> {
  const files = await filesOf(copy);
  const isThere = (path: string) => existsSync(join(root, path));
  const isEdited = (path: string) => !readFileSync(join(root, path)).equals(readFileSync(join(copy, path)));
  return {
    created: files.filter((path) => !isThere(path)),
    edited: files.filter((path) => isThere(path) && isEdited(path)),
  };
}

async function followAll(steps: readonly Step[], copy: string): Promise<void> {
  const follower = new Follower(copy);
  const isOfSkeleton = ({ section }: Step) => section === skeleton.section;
  try {
    for (const step of steps.filter(isOfSkeleton)) await follower.follow(step);
    const { created, edited } = await changesIn(copy);
    if (created.length === 0 || created.length > skeleton.created)
      throw new Error(`a service takes ${created.length} new files, of ${skeleton.created} allowed`);
    if (edited.length > skeleton.edited)
      throw new Error(`a service takes ${edited.length} edits, of ${skeleton.edited} allowed`);
    for (const command of ofSkeleton) await runScript(command, copy);
    for (const step of steps.filter((other) => !isOfSkeleton(other))) await follower.follow(step);
  } finally {
    await follower.stop();
  }
  const sources = steps.flatMap((step) => ('path' in step && step.path.endsWith('.ts') ? [join('..', step.path)] : []));
  // What the gateway adds to Fastify's requests and replies is declared where it is made.
  const declarations = ['requests/request-state.ts', 'console/console-files.ts'];
  const types = {
    extends: '../tsconfig.base.json',
    files: [...sources, ...declarations.map((path) => `../apps/gateway/src/${path}`)],
  };
  writeFileSync(join(copy, 'dist/worked-example.json'), JSON.stringify(types));
  const { created, edited } = await changesIn(copy);
  for (const command of [...ofService, `oxfmt --check ${[...created, ...edited].join(' ')}`])
    await runScript(command, copy);
}

async function main(): Promise<void> {
  const steps = stepsOf(readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8'), chapter);
  const copy = await copyRepository();
  try {
    await followAll(steps, copy);
  } finally {
    removeServerFolder(copy);
  }
}

try {
  await main();
} catch (error) {
  console.log(`CONTRIBUTING.md, "${chapter}": ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}
