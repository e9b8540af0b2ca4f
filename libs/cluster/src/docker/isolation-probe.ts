import { randomBytes } from 'node:crypto';
import { smallBody } from './container-body.js';
import type { Containers } from './containers.js';
import { doorUser } from './door-files.js';
import type { Engine } from './engine.js';
import type { ContainerAnswer, ListedContainer } from './engine-answer.js';
import type { Images } from './images.js';
import type { Keepers } from './keepers.js';
import { lookAround } from './look-around.js';
import type { BreachKind, Names } from './names.js';

const memoryBytes = 128 * 1024 * 1024;
const processesAtMost = 256;
/** Networks that one look tries from another one: three processes each. */
const triedAtOnce = 64;
const port = 9_000;
const configuration = `include /etc/nginx/modules-enabled/*.conf;
daemon off;
worker_processes 1;
pid /tmp/nginx.pid;
error_log stderr crit;
events { worker_connections 16; }
stream { server { listen ${port}; return ""; } }`;
const listen = ['sh', '-c', 'echo "$1" >/tmp/nginx.conf; exec nginx -e stderr -c /tmp/nginx.conf', 'sh', configuration];
/** Exits with 1 if a connection opens, with 0 if none does. Debian has bash but no nc, Alpine the reverse. */
const dial = (host: string): string[] => [
  'sh',
  '-c',
  `for attempt in 1 2; do
    if command -v bash >/dev/null; then timeout 1 bash -c ': <"/dev/tcp/$0/$1"' "$1" "$2" && exit 1
    else timeout 1 nc "$1" "$2" </dev/null && exit 1; fi
  done 2>/dev/null; exit 0`,
  'sh',
  host,
  String(port),
];
const reached = 1;
/** Below stand the codes of a shell that fails, and above 125 those of an engine. */
const firstCode = 10;

/**
 * Ends with 0 where none of the hosts can be reached, and else with `firstCode` and the place of one that can. Nothing
 * listens there, so one that is reached refuses, and one that is not is silent. A firewall that refuses in its name
 * looks the same.
 */
const dialAll = (hosts: readonly string[]): string[] => [
  'sh',
  '-c',
  `at=$1; port=$2; shift 2
  for host; do
    { if command -v bash >/dev/null; then timeout 2 bash -c ': <"/dev/tcp/$0/$1"' "$host" "$port"
      else timeout 2 nc "$host" "$port" </dev/null; fi
      [ $? -gt 1 ] || echo "$at" >>/tmp/reached; } 2>/dev/null &
    at=$((at + 1))
  done
  wait
  code=0
  [ ! -s /tmp/reached ] || read -r code </tmp/reached
  exit "$code"`,
  'sh',
  String(firstCode),
  String(port),
  ...hosts,
];
interface Keeper {
  readonly Id: string;
  readonly name: string;
  readonly address: string;
}
type Pair = readonly [from: Keeper, to: Keeper];
type StartProbe = (beside: Keeper, command: readonly string[]) => Promise<string>;

/**
 * Looks whether a container in one network reaches those in others, and restores the isolation where it does
 * (`lookAround`: which). All sides join the network namespaces of keepers: to start in a network of their own would
 * itself restore what is looked at.
 */
export class IsolationProbe {
  /** By `performance.now()`. */
  #nextMs = 0;
  /** Where the last look ended. */
  #lastName = '';

  constructor(
    private readonly parts: { engine: Engine; containers: Containers; names: Names; images: Images; keepers: Keepers },
    /** Debian or Alpine with nginx, its stream module and `sh`. */
    private readonly image: string,
    private readonly everyMs: number,
  ) {}

  /** Nothing happens where it ran lately. */
  async runIfDue(signal: AbortSignal): Promise<void> {
    if (performance.now() < this.#nextMs) return;
    this.#nextMs = performance.now() + this.everyMs;
    await this.#run(signal);
  }

  /**
   * Looks again after a breach that could not be mended, between the same two networks where they are there, and mends
   * it if it can now. Returns whether it is still there; where it is not, the note of it is removed. For the check of
   * the cluster: the pods service does not come to an engine that is of no use.
   */
  async isStillOpen(note: Pick<ListedContainer, 'Id' | 'Labels'>, signal: AbortSignal): Promise<boolean> {
    await this.#removeAbandoned(signal);
    const running = await this.#keepers(signal);
    const names = this.parts.names.betweenOf(note.Labels);
    const [from, to] = names.map((name) => running.find((keeper) => keeper.name === name));
    const pair = from && to ? ([from, to] as const) : await this.#look(running, signal);
    if (pair === null) return true;
    if (pair) {
      let isOpen = await this.#reaches(pair, signal);
      if (isOpen) {
        await this.parts.keepers.renewNetworks(pair, signal);
        isOpen = await this.#reaches(pair, signal);
      }
      if (isOpen !== false) return true;
    }
    // By its id: another one may have its name by now.
    await this.parts.containers.remove(note.Id, signal);
    return false;
  }

  /**
   * What was found stays on the engine as a container that never starts, for the check of the cluster, which is another
   * process.
   */
  async #run(signal: AbortSignal): Promise<void> {
    const { containers, images, keepers } = this.parts;
    await this.#removeAbandoned(signal);
    if (!(await images.has(this.image, signal))) return;
    const [note] = await containers.list({ kind: 'open-breach' }, signal);
    if (note && (await this.isStillOpen(note, signal))) return;
    const pair = await this.#look(await this.#keepers(signal), signal);
    if (!pair || !(await this.#reaches(pair, signal))) return;
    await keepers.renewNetworks(pair, signal);
    await this.#note('breach', pair, signal);
    if (await this.#reaches(pair, signal)) await this.#note('open-breach', pair, signal);
  }

  async #keepers(signal: AbortSignal): Promise<readonly Keeper[]> {
    const running = await this.parts.keepers.running(signal);
    return running.flatMap((container) => {
      const [name = ''] = container.Names;
      const address = addressOf(container);
      return address ? [{ Id: container.Id, name: name.replace(/^\//, ''), address }] : [];
    });
  }

  /** Two networks, one of which seems to reach the other; false if this test found none, null if the test failed. */
  async #look(keepers: readonly Keeper[], signal: AbortSignal): Promise<Pair | false | null> {
    const look = lookAround(keepers, this.#lastName, triedAtOnce);
    if (!look) return false;
    const { from, others } = look;
    // First, so that a keeper beside which nothing starts does not end all looks.
    this.#lastName = others.at(-1)?.name ?? '';
    const addresses = others.map(({ address }) => address);
    const code = await this.#withProbes((start) => this.#codeOf(start(from, dialAll(addresses)), signal), signal);
    const to = others[code - firstCode];
    if (to) return [from, to];
    return code === 0 ? false : null;
  }

  /** null where it cannot be said, as when one of the two has ended meanwhile. */
  async #reaches([from, to]: Pair, signal: AbortSignal): Promise<boolean | null> {
    const { containers } = this.parts;
    // A restart may have given it another one.
    const address = addressOf(await containers.find(to.name, signal));
    if (!address) return null;
    return this.#withProbes(async (start) => {
      const listener = await start(to, listen);
      const code = await this.#codeOf(start(from, dial(address)), signal);
      if (code === reached) return true;
      const isListening = (await containers.find(listener, signal))?.State.Status === 'running';
      return code === 0 && isListening ? false : null;
    }, signal);
  }

  async #codeOf(started: Promise<string>, signal: AbortSignal): Promise<number> {
    const path = `/containers/${await started}/wait`;
    return (await this.parts.engine.json<{ StatusCode: number }>({ method: 'POST', path, signal })).StatusCode;
  }

  /** `start` starts a container beside a keeper and returns its name. They are removed in the end. */
  async #withProbes<T>(action: (start: StartProbe) => Promise<T>, signal: AbortSignal): Promise<T> {
    const { containers, names } = this.parts;
    const made: string[] = [];
    try {
      return await action(async ({ Id }, command) => {
        const name = names.probe(randomBytes(8).toString('hex'));
        made.push(name);
        await containers.create(name, this.#body(command, `container:${Id}`, names.guardLabels('probe')), signal);
        await containers.start(name, signal);
        return name;
      });
    } finally {
      // Not bound to the signal: Podman removes no keeper that one of these depends on.
      for (const name of made) await containers.remove(name, AbortSignal.timeout(removalMs)).catch(() => undefined);
    }
  }

  async #note(kind: BreachKind, [from, to]: Pair, signal: AbortSignal): Promise<void> {
    const { containers, names } = this.parts;
    await containers.remove(names.breach(kind), signal);
    await containers.create(
      names.breach(kind),
      this.#body(['true'], 'none', names.breachLabels(kind, from.name, to.name)),
      signal,
    );
  }

  #body(command: readonly string[], network: string, labels: object): object {
    return {
      Image: this.image,
      User: `${doorUser}:${doorUser}`,
      Entrypoint: command,
      Cmd: [],
      Labels: labels,
      StopTimeout: 0,
      HostConfig: {
        ...smallBody(memoryBytes, processesAtMost),
        NetworkMode: network,
        Tmpfs: { '/tmp': 'rw,noexec,nosuid,size=1m' },
      },
    };
  }

  /** Those that a crash has left. */
  async #removeAbandoned(signal: AbortSignal): Promise<void> {
    const probes = await this.parts.containers.list({ kind: 'probe' }, signal);
    for (const { Id, Created } of probes)
      if (Date.now() - Created * 1000 > abandonedMs) await this.parts.containers.remove(Id, signal);
  }
}

const removalMs = 15_000;
const abandonedMs = 120_000;

function addressOf(container: Pick<ContainerAnswer, 'NetworkSettings'> | null): string | undefined {
  return Object.values(container?.NetworkSettings?.Networks ?? {}).find(({ IPAddress }) => IPAddress)?.IPAddress;
}
