import { randomBytes } from 'node:crypto';
import { smallBody } from './container-body.js';
import type { Containers } from './containers.js';
import { doorUser } from './door-files.js';
import type { Engine } from './engine.js';
import type { ListedContainer } from './engine-answer.js';
import type { Images } from './images.js';
import type { Keepers } from './keepers.js';
import type { BreachKind, Names } from './names.js';

const memoryBytes = 64 * 1024 * 1024;
const processesAtMost = 16;
const port = 9_000;
const configuration = `include /etc/nginx/modules-enabled/*.conf;
daemon off;
worker_processes 1;
pid /tmp/nginx.pid;
error_log stderr crit;
events { worker_connections 16; }
stream { server { listen ${port}; return ""; } }`;
const listen = ['sh', '-c', 'echo "$1" >/tmp/nginx.conf; exec nginx -e stderr -c /tmp/nginx.conf', 'sh', configuration];
/** Ends with 1 where a connection opens, with 0 where none does: Debian has bash and no nc, Alpine the other. */
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

/**
 * Looks whether a container in one network reaches one in another, and restores the isolation where it does. Both sides join the network namespaces of two
 * keepers: to start in a network of their own would itself restore what is looked at.
 */
export class IsolationProbe {
  #nextMs = 0;

  constructor(
    private readonly parts: { engine: Engine; containers: Containers; names: Names; images: Images; keepers: Keepers },
    /** Debian or Alpine with nginx, its stream module and `sh`. */
    private readonly image: string,
    private readonly everyMs: number,
  ) {}

  /** Nothing happens where it ran lately. */
  async runIfDue(signal: AbortSignal): Promise<void> {
    if (Date.now() < this.#nextMs) return;
    this.#nextMs = Date.now() + this.everyMs;
    await this.#run(signal);
  }

  /**
   * Looks again after a breach that could not be mended, and mends it if it can now. Returns whether it is still there; where it is not, the note of it is removed.
   * For the check of the cluster: the pods service does not come to an engine that is of no use.
   */
  async isStillOpen(note: { readonly Id: string }, signal: AbortSignal): Promise<boolean> {
    const { containers, keepers } = this.parts;
    await this.#removeAbandoned(signal);
    const [from, to] = twoOf(await keepers.running(signal));
    if (from && to) {
      let isOpen = await this.#reaches(from, to, signal);
      if (isOpen) {
        await keepers.renewNetworks([from, to], signal);
        isOpen = await this.#reaches(from, to, signal);
      }
      if (isOpen !== false) return true;
    }
    // By its id: another one may have its name by now.
    await containers.remove(note.Id, signal);
    return false;
  }

  /** What was found stays on the engine as a container that never starts, for the check of the cluster, which is another process. */
  async #run(signal: AbortSignal): Promise<void> {
    const { containers, images, keepers, names } = this.parts;
    await this.#removeAbandoned(signal);
    const [from, to] = twoOf(await keepers.running(signal));
    if (!from || !to || !(await images.has(this.image, signal))) return;
    let isOpen = await this.#reaches(from, to, signal);
    if (isOpen) {
      await keepers.renewNetworks([from, to], signal);
      await this.#note('breach', signal);
      isOpen = await this.#reaches(from, to, signal);
      if (isOpen) return this.#note('open-breach', signal);
    }
    if (isOpen === false) await containers.remove(names.breach('open-breach'), signal);
  }

  /** null where it cannot be said, as when one of the two has ended meanwhile. */
  async #reaches(from: ListedContainer, to: ListedContainer, signal: AbortSignal): Promise<boolean | null> {
    const { containers, engine } = this.parts;
    const host = await this.#addressOf(to, signal);
    if (!host) return null;
    const made: string[] = [];
    try {
      const listener = await this.#start(to, listen, made, signal);
      const dialler = await this.#start(from, dial(host), made, signal);
      const { StatusCode } = await engine.json<{ StatusCode: number }>({ method: 'POST', path: `/containers/${dialler}/wait`, signal });
      if (StatusCode === reached) return true;
      const isListening = (await containers.find(listener, signal))?.State.Status === 'running';
      return StatusCode === 0 && isListening ? false : null;
    } finally {
      // Not bound to the signal: Podman removes no keeper that one of these depends on.
      for (const name of made) await containers.remove(name, AbortSignal.timeout(removalMs)).catch(() => undefined);
    }
  }

  async #start({ Id }: ListedContainer, command: readonly string[], made: string[], signal: AbortSignal): Promise<string> {
    const { containers, names } = this.parts;
    const name = names.probe(randomBytes(8).toString('hex'));
    made.push(name);
    await containers.create(name, this.#body(command, `container:${Id}`, names.guardLabels('probe')), signal);
    await containers.start(name, signal);
    return name;
  }

  async #addressOf({ Names: [name = ''] }: ListedContainer, signal: AbortSignal): Promise<string | undefined> {
    const found = await this.parts.containers.find(name.replace(/^\//, ''), signal);
    return Object.values(found?.NetworkSettings?.Networks ?? {}).find(({ IPAddress }) => IPAddress)?.IPAddress;
  }

  async #note(kind: BreachKind, signal: AbortSignal): Promise<void> {
    const { containers, names } = this.parts;
    await containers.remove(names.breach(kind), signal);
    await containers.create(names.breach(kind), this.#body(['true'], 'none', names.guardLabels(kind)), signal);
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
    for (const { Id, Created } of probes) if (Date.now() - Created * 1000 > abandonedMs) await this.parts.containers.remove(Id, signal);
  }
}

const removalMs = 15_000;
const abandonedMs = 120_000;

/** Others each time. */
function twoOf<T>(all: readonly T[]): readonly [T?, T?] {
  if (all.length < 2) return [];
  const first = Math.floor(Math.random() * all.length);
  return [all[first], all[(first + 1) % all.length]];
}
