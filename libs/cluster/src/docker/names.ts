import { createHash, randomBytes } from 'node:crypto';
import { ClusterError } from '../cluster-error.js';
import type { Door, ObjectKind, ObjectRef, Owner, PodRun, RunRef, VolumeRef } from '../objects.js';
import type { Labels } from './engine-answer.js';

/** Labels of everything that Atoll creates on an engine. */
const label = {
  installation: 'dev.atoll.installation',
  /** A `LabelKind`. */
  kind: 'dev.atoll.kind',
  id: 'dev.atoll.id',
  run: 'dev.atoll.run',
  team: 'dev.atoll.team',
  workspace: 'dev.atoll.workspace',
  /** The container that a link belongs to. */
  pod: 'dev.atoll.pod',
  /** The leases of a pod, comma-separated. */
  leases: 'dev.atoll.leases',
  /** When a run of a pod was requested. */
  requested: 'dev.atoll.requested',
  /** Where a door leads. */
  door: 'dev.atoll.door',
  /** The keepers of two networks that were not isolated from each other. */
  between: 'dev.atoll.between',
} as const;

const kinds: ReadonlySet<string> = new Set<ObjectKind>(['pod', 'door', 'volume', 'vm']);
/** Longest name of a network interface in Linux, without its end: IFNAMSIZ in linux/if.h. */
const longestInterface = 15;

/** What was seen of networks that were not isolated: one that was mended, and one that could not be. */
export type BreachKind = 'breach' | 'open-breach';
type LabelKind = ObjectKind | 'link' | 'network' | 'keeper' | 'probe' | BreachKind;

/** For the parameter `filters` of the API: what is of this kind, of every installation on the engine. */
export function ofAnyInstallation(kind: LabelKind): { label: string[] } {
  return { label: [`${label.kind}=${kind}`] };
}

/**
 * Names and labels of one installation on an engine. They are derived from ids only, so that existing objects are found
 * after a crash.
 */
export class Names {
  readonly #prefix: string;

  constructor(readonly installationId: string) {
    if (!/^[a-z0-9][a-z0-9-]{0,49}$/.test(installationId)) {
      throw new ClusterError(
        'invalid',
        'The id of an installation has lower-case letters, digits and "-", at most 50.',
      );
    }
    this.#prefix = `atoll-${installationId}`;
  }

  /** Of the container of a pod's run or of a door, or of a volume. */
  of({ kind, id, run }: Pick<ObjectRef, 'kind' | 'id' | 'run'>): string {
    checkId(id);
    return kind === 'volume' ? `${this.#prefix}-volume-${id}` : `${this.#prefix}-${kind}-${id}-${run}`;
  }

  /**
   * The names that the volume of a team may have: the first, or the second where the first is another team's. That is
   * so where the database was restored and gave the id again.
   */
  ofVolume(ref: VolumeRef): readonly [string, string] {
    checkId(ref.teamId);
    return [this.of(ref), `${this.of(ref)}-${ref.teamId}`];
  }

  link(token: string): string {
    return `${this.#prefix}-link-${token}`;
  }

  /** Of the container that keeps a workspace's network from ending with its last pod. */
  keeper(workspaceId: string): string {
    checkId(workspaceId);
    return `${this.#prefix}-keeper-${workspaceId}`;
  }

  /** Of a container that looks whether networks are isolated. */
  probe(token: string): string {
    return `${this.#prefix}-probe-${token}`;
  }

  /** Of a network that is removed at once. */
  scratchNetwork(): string {
    return `${this.#prefix}-scratch`;
  }

  breach(kind: BreachKind): string {
    return `${this.#prefix}-${kind}`;
  }

  network(workspaceId: string): string {
    checkId(workspaceId);
    return `${this.#prefix}-network-${workspaceId}`;
  }

  /**
   * Of the bridge of a workspace's network on the host. `isNew`: one that no network has had, as Podman needs it: where
   * an interface that a crash has left keeps a bridge after its network, netavark gives that bridge none of the
   * addresses of the next network, and nothing in it works.
   */
  bridge(workspaceId: string, isNew: boolean): string {
    const digest = isNew ? randomBytes(8) : createHash('sha256').update(this.network(workspaceId)).digest();
    return `atl${digest.toString('hex')}`.slice(0, longestInterface);
  }

  labels(ref: ObjectRef, owner: Owner): Labels {
    return {
      ...this.#common(ref.kind, owner.workspaceId),
      [label.id]: ref.id,
      [label.run]: String(ref.run),
      [label.team]: owner.teamId,
    };
  }

  podLabels({ ref, owner, slices, requestedAt }: Pick<PodRun, 'ref' | 'owner' | 'slices' | 'requestedAt'>): Labels {
    const leases = slices.map(({ leaseId }) => leaseId).join(',');
    const requested = { [label.requested]: requestedAt.toISOString() };
    return { ...this.labels(ref, owner), ...(leases !== '' && { [label.leases]: leases }), ...requested };
  }

  /** Whether a container with these labels is this run. Those of earlier releases do not say when it was requested. */
  isRun(labels: Labels | null, { requestedAt }: Pick<PodRun, 'requestedAt'>): boolean {
    const requested = labels?.[label.requested];
    return requested === undefined || requested === requestedAt.toISOString();
  }

  doorLabels({ ref, owner, podId, port, transport, externalPort }: Door): Labels {
    return { ...this.labels(ref, owner), [label.door]: `${externalPort}/${transport} ${podId}:${port}` };
  }

  /** Whether a container with these labels is this door. Those of earlier releases do not say where they lead. */
  isDoor(labels: Labels | null, door: Door): boolean {
    const wanted = this.doorLabels(door);
    const says = (name: string): boolean => labels?.[name] === wanted[name];
    return says(label.team) && says(label.workspace) && (says(label.door) || labels?.[label.door] === undefined);
  }

  /** `pod`: the id of the pod's container. */
  linkLabels(pod: string, podLabels: Labels | null): Labels {
    return { ...this.#common('link', podLabels?.[label.workspace] ?? ''), [label.pod]: pod };
  }

  keeperLabels(workspaceId: string): Labels {
    return this.#common('keeper', workspaceId);
  }

  /** Of what belongs to no workspace. */
  guardLabels(kind: 'probe' | 'scratch' | BreachKind): Labels {
    return this.#common(kind, '');
  }

  /** `from`, `to`: names of keepers. */
  breachLabels(kind: BreachKind, from: string, to: string): Labels {
    return { ...this.guardLabels(kind), [label.between]: `${from} ${to}` };
  }

  /** The names of two keepers; absent in notes of an earlier release. */
  betweenOf(labels: Labels | null): readonly string[] {
    return labels?.[label.between]?.split(' ') ?? [];
  }

  networkLabels(owner: Owner): Labels {
    return { ...this.#common('network', owner.workspaceId), [label.team]: owner.teamId };
  }

  #common(kind: string, workspaceId: string): Labels {
    return { [label.installation]: this.installationId, [label.kind]: kind, [label.workspace]: workspaceId };
  }

  /** For the parameter `filters` of the API: of this installation, and all of these. */
  filter(wanted: { kind?: LabelKind; pod?: string; workspace?: string } = {}): { label: string[] } {
    const more = Object.entries(wanted).map(
      ([name, value]) => `${label[name as 'kind' | 'pod' | 'workspace']}=${value}`,
    );
    return { label: [`${label.installation}=${this.installationId}`, ...more] };
  }

  kindOf(labels: Labels | null | undefined): string | null {
    return labels?.[label.kind] ?? null;
  }

  isOurs(labels: Labels | null | undefined): boolean {
    return labels?.[label.installation] === this.installationId;
  }

  /** The object that these labels describe; null if they describe none, or one of another installation. */
  refOf(labels: Labels | null | undefined): ObjectRef | null {
    const { [label.kind]: kind = '', [label.id]: id, [label.run]: run, [label.team]: teamId = '' } = labels ?? {};
    if (!this.isOurs(labels) || !kinds.has(kind) || !id || !/^\d+$/.test(run ?? '')) return null;
    return kind === 'volume' ? { kind, id, run: 0, teamId } : { kind: kind as RunRef['kind'], id, run: Number(run) };
  }

  isOfTeam(labels: Labels | null | undefined, teamId: string): boolean {
    return this.isOurs(labels) && labels?.[label.team] === teamId;
  }

  /** "" where they do not say it. */
  teamOf(labels: Labels | null): string {
    return labels?.[label.team] ?? '';
  }

  workspaceOf(labels: Labels | null | undefined): string | null {
    return labels?.[label.workspace] ?? null;
  }
}

/** The name under which the newest run of a pod is found in its network. */
export function aliasOf(podId: string): string {
  checkId(podId);
  return `pod-${podId}`;
}

/** Ids become parts of names and of nginx's configuration. */
function checkId(id: string): void {
  if (!/^[a-z0-9][a-z0-9-]{0,49}$/.test(id))
    throw new ClusterError('invalid', 'An id has lower-case letters, digits and "-", at most 50.');
}
