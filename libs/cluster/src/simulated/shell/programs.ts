import { posix } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { nvidiaSmi } from './nvidia-smi.js';
import type { Program, ShownPod, SimulatedProcess } from './simulated-process.js';

const longestSleepS = 86_400;
const interrupted = 130;

/** The programs of a simulated pod, by name. `exit` is the shell's own. */
export const programs: ReadonlyMap<string, Program> = new Map<string, Program>([
  ['cat', cat],
  ['cd', changeFolder],
  ['clear', ({ print }) => say(print, '\u001b[H\u001b[2J')],
  ['date', ({ print }) => say(print, `${new Date().toUTCString()}\n`)],
  ['echo', ({ print, words }) => say(print, words[0] === '-n' ? words.slice(1).join(' ') : `${words.join(' ')}\n`)],
  ['env', ({ env, print }) => say(print, [...env].map(([name, value]) => `${name}=${value}\n`).join(''))],
  ['false', () => Promise.resolve(1)],
  [
    'help',
    ({ print }) =>
      say(print, `This pod is simulated. Its shell knows: ${[...programs.keys(), 'exit'].toSorted().join(', ')}.\n`),
  ],
  ['hostname', ({ pod, print }) => say(print, `${pod.podName}\n`)],
  ['id', ({ print }) => say(print, 'uid=0(root) gid=0(root) groups=0(root)\n')],
  ['ls', listFolder],
  ['nvidia-smi', nvidiaSmi],
  ['ps', ({ print }) => say(print, 'PID TTY          TIME CMD\n  1 ?        00:00:00 main\n')],
  ['pwd', ({ env, print }) => say(print, `${folderOf(env)}\n`)],
  ['sleep', sleep],
  [
    'stty',
    ({ env, print, words }) =>
      say(print, words[0] === 'size' ? `${env.get('LINES') ?? 0} ${env.get('COLUMNS') ?? 0}\n` : ''),
  ],
  ['true', () => Promise.resolve(0)],
  [
    'uname',
    ({ pod, print, words }) =>
      say(print, words.length > 0 ? `Linux ${pod.podName} simulated x86_64 GNU/Linux\n` : 'Linux\n'),
  ],
  [
    'uptime',
    ({ pod, print }) => say(print, `up ${Math.max(0, Math.floor((Date.now() - pod.readyMs) / 60_000))} min\n`),
  ],
  ['whoami', ({ print }) => say(print, 'root\n')],
]);

/** Nothing can be written there. */
function filesOf({ podName, image }: ShownPod): ReadonlyMap<string, string> {
  return new Map([
    ['/etc/hostname', `${podName}\n`],
    ['/etc/os-release', 'PRETTY_NAME="Atoll simulated pod"\nID=atoll-simulated\n'],
    ['/workspace/README', `This pod of the image ${image} is simulated: no container exists, and no GPU is used.\n`],
  ]);
}

const folders: ReadonlySet<string> = new Set(['/', '/etc', '/root', '/tmp', '/workspace']);

async function say(print: SimulatedProcess['print'], text: string): Promise<number> {
  await print(text);
  return 0;
}

function folderOf(env: ReadonlyMap<string, string>): string {
  return env.get('PWD') ?? '/';
}

function changeFolder({ complain, env, words: [folder = '/root'] }: SimulatedProcess): Promise<number> {
  const path = posix.resolve(folderOf(env), folder);
  if (!folders.has(path)) return refuse(complain, `cd: ${folder}: No such file or directory`);
  env.set('PWD', path);
  return Promise.resolve(0);
}

async function listFolder({ complain, env, pod, print, words }: SimulatedProcess): Promise<number> {
  const asked = words.filter((word) => !word.startsWith('-'));
  for (const name of asked.length > 0 ? asked : ['.']) {
    const path = posix.resolve(folderOf(env), name);
    const known = [...folders, ...filesOf(pod).keys()];
    if (!known.includes(path)) return refuse(complain, `ls: cannot access '${name}': No such file or directory`, 2);
    const inside = known
      .filter((other) => other !== '/' && posix.dirname(other) === path)
      .map((other) => posix.basename(other));
    await print(folders.has(path) ? inside.map((entry) => `${entry}\n`).join('') : `${name}\n`);
  }
  return 0;
}

async function cat({ complain, env, input, pod, print, signal, words }: SimulatedProcess): Promise<number> {
  if (words.length === 0) for await (const piece of input) await print(piece);
  for (const name of words) {
    const text = filesOf(pod).get(posix.resolve(folderOf(env), name));
    if (text === undefined) return refuse(complain, `cat: ${name}: No such file or directory`);
    await print(text);
  }
  return signal.aborted ? interrupted : 0;
}

async function sleep({ complain, signal, words }: SimulatedProcess): Promise<number> {
  const seconds = words[0] === 'infinity' ? longestSleepS : Number(words[0]);
  if (words.length !== 1 || !(seconds >= 0)) return refuse(complain, 'sleep: say for how many seconds');
  await delay(Math.min(seconds, longestSleepS) * 1_000, undefined, { signal, ref: false }).catch(() => undefined);
  return signal.aborted ? interrupted : 0;
}

async function refuse(complain: SimulatedProcess['complain'], sentence: string, code = 1): Promise<number> {
  await complain(`${sentence}\n`);
  return code;
}
