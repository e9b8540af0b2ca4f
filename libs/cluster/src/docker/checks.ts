import { statfs } from 'node:fs/promises';
import type { ClusterCheck } from '../cluster-driver.js';
import type { Engine } from './engine.js';
import type { InfoAnswer, PodmanListedContainer } from './engine-answer.js';
import { clusterErrorOf, isForbidden } from './engine-errors.js';
import type { Images } from './images.js';
import type { IsolationProbe } from './isolation-probe.js';
import { ofAnyInstallation, type BreachKind } from './names.js';

const oldestApi = 1.41;
const fullShare = 0.05;
/** So long an operator is told of networks that were not isolated and are now. */
const notedMs = 86_400_000;
/** For another look at those that were not when they were last looked at. */
const lookAgainMs = 5_000;
const openTheSocket =
  'Let the user of gpuaas and pods write to the socket: put it into the socket’s group (in a container: group_add). See docs/operations.md.';
const setTheRule =
  'On the engine’s host: iptables -I FORWARD -m comment --comment atoll -j NETAVARK_ISOLATION_1, after each of its starts. See docs/pods-on-containers.md.';
const noCdi = ' Without CDI: it gives pods no slices of real GPUs.';
const timeOf = ({ Created }: PodmanListedContainer): string => new Date(Created).toISOString();
const openNote = /^atoll-(.+)-open-breach$/;

const passed = (name: string, detail: string): ClusterCheck => ({
  name,
  ok: true,
  detail,
  howToFix: null,
  isVital: true,
});
const failed = (name: string, detail: string, howToFix: string, isVital = true): ClusterCheck => ({
  name,
  ok: false,
  detail,
  howToFix,
  isVital,
});

/** What an operator has to see to before pods run on an engine. */
export class Checks {
  constructor(
    private readonly parts: {
      engine: Engine;
      images: Images;
      probeOf: (installationId: string, image: string) => IsolationProbe;
    },
    private readonly options: { doorImage: string; isLocal: boolean },
  ) {}

  /** `read`: reads the engine's `/info`. All is asked at once: a busy Podman takes seconds for each answer. */
  async run(read: () => Promise<InfoAnswer>, signal: AbortSignal): Promise<readonly ClusterCheck[]> {
    try {
      const reading = read();
      const [info, ...found] = await Promise.all([
        reading,
        this.#version(reading),
        this.#isolation(signal),
        this.#doorImage(signal),
      ]);
      const ofHost = [limits(info), seccomp(info), ...(await this.#disk(info))];
      return [passed('reachable', `The engine answers as ${info.Name}.`), ...ofHost, ...found.flat()];
    } catch (error) {
      const found = clusterErrorOf(error);
      return [
        failed(
          'reachable',
          found.message,
          isForbidden(found) ? openTheSocket : 'Start the engine, or correct its address and its credentials.',
        ),
      ];
    }
  }

  async #version(reading: Promise<InfoAnswer>): Promise<ClusterCheck> {
    const { apiVersion, kind, version } = await this.parts.engine.greeting();
    const name = kind === 'podman' ? 'Podman Engine' : 'Engine';
    const hasCdi = kind === 'podman' || (await reading).CDISpecDirs?.length;
    const detail = `${[name, version].filter(Boolean).join(' ')}, API ${apiVersion}.${hasCdi ? '' : noCdi}`;
    if (Number(apiVersion) >= oldestApi) return passed('version', detail);
    return failed('version', detail, `Upgrade the engine to API ${oldestApi}: Docker 20.10 or Podman 4.`);
  }

  /** Docker's bridges are apart by themselves; Podman keeps them apart by an option that only netavark knows. */
  async #isolation(signal: AbortSignal): Promise<ClusterCheck[]> {
    const { engine } = this.parts;
    if ((await engine.kind(signal)) === 'docker') return [];
    const { host } = await engine.json<{ host: { networkBackend?: string } }>({
      method: 'GET',
      path: '/info',
      api: 'libpod',
      signal,
    });
    const backend = host.networkBackend ?? 'unknown';
    const fix = 'Install netavark and aardvark-dns, and set network_backend = "netavark" in containers.conf.';
    if (backend !== 'netavark') return [failed('isolation', `The network backend is ${backend}.`, fix)];
    return [await this.#breaches(signal)];
  }

  /**
   * What the pods service has seen of the networks (`IsolationProbe`); they are those of the host, so it may be another
   * installation's. A breach that could not be mended is looked at again: an engine is of use as soon as it is mended,
   * and not before.
   */
  async #breaches(signal: AbortSignal): Promise<ClusterCheck> {
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(lookAgainMs)]);
    for (const note of await this.#noted('open-breach', signal)) {
      if (!(await this.#isStillOpen(note, inTime))) continue;
      return failed('isolation', `Pods of different workspaces reach each other, seen at ${timeOf(note)}.`, setTheRule);
    }
    const [mended] = (await this.#noted('breach', signal)).filter(
      ({ Created }) => Date.now() - Date.parse(Created) < notedMs,
    );
    if (!mended) return passed('isolation', 'Networks are isolated by netavark.');
    const detail = `Pods of different workspaces could reach each other, seen at ${timeOf(mended)}; the isolation has been restored since.`;
    return failed('isolation', detail, setTheRule, false);
  }

  /**
   * In the name of the installation that has seen it: its service removes what is left of a look that was cut short.
   */
  async #isStillOpen(note: PodmanListedContainer, signal: AbortSignal): Promise<boolean> {
    const [installationId] = note.Names.flatMap((name) => openNote.exec(name)?.[1] ?? []);
    if (installationId === undefined) return true;
    try {
      // The image of the note was of use for the look that it is of.
      return await this.parts.probeOf(installationId, note.Image).isStillOpen(note, signal);
    } catch {
      return true;
    }
  }

  /** Newest first. Uses Podman's own API, which works even while a half removed container exists. */
  async #noted(kind: BreachKind, signal: AbortSignal): Promise<readonly PodmanListedContainer[]> {
    const query = { all: true, filters: ofAnyInstallation(kind) };
    const call = { method: 'GET', path: '/containers/json', query, api: 'libpod', signal } as const;
    const noted = (await this.parts.engine.json<PodmanListedContainer[]>(call)).filter(
      ({ State }) => State !== 'removing',
    );
    return noted.toSorted((a, b) => Date.parse(b.Created) - Date.parse(a.Created));
  }

  /** Only of an engine on this machine: the API does not tell. */
  async #disk({ DockerRootDir }: InfoAnswer): Promise<ClusterCheck[]> {
    if (!this.options.isLocal) return [];
    try {
      const { bavail, blocks, bsize } = await statfs(DockerRootDir);
      const detail = `${((bavail * bsize) / 1e9).toFixed(1)} GB of ${((blocks * bsize) / 1e9).toFixed(1)} GB are free on the engine’s disk.`;
      if (bavail / blocks >= fullShare) return [passed('disk', detail)];
      return [
        failed('disk', detail, 'Remove images that are not used (docker image prune --all), or add disk space.', false),
      ];
    } catch {
      return [];
    }
  }

  async #doorImage(signal: AbortSignal): Promise<ClusterCheck> {
    const { doorImage } = this.options;
    if (await this.parts.images.has(doorImage, signal)) return passed('door_image', `${doorImage} is on the engine.`);
    const fix =
      'Build it there from deploy/door in the repository, or pull it; otherwise it is pulled when it is first needed.';
    return failed('door_image', `${doorImage} is not on the engine.`, fix, false);
  }
}

function limits({ MemoryLimit, CpuCfsQuota, PidsLimit }: InfoAnswer): ClusterCheck {
  const missing = [!MemoryLimit && 'memory', !CpuCfsQuota && 'CPU', !PidsLimit && 'processes'].filter(Boolean);
  if (missing.length === 0) return passed('limits', 'The engine enforces limits of memory, CPU and processes.');
  return failed(
    'limits',
    `The engine enforces no limit of ${missing.join(', ')}.`,
    'Enable these cgroup controllers in the host’s kernel.',
  );
}

function seccomp({ SecurityOptions }: InfoAnswer): ClusterCheck {
  const isOn = SecurityOptions?.some((option) => option.startsWith('name=seccomp') && !option.includes('unconfined'));
  if (isOn) return passed('seccomp', 'Containers run under a seccomp profile.');
  return failed(
    'seccomp',
    'Containers run without a seccomp profile.',
    'Run an engine and a kernel with seccomp, under the default profile.',
  );
}
