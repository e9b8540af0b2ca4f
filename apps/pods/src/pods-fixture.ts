import { setTimeout as delay } from 'node:timers/promises';
import type { TeamRole, UserCaller } from '@atoll/contracts';
import type { UsageTold } from '@atoll/contracts/billing';
import {
  exposedServices,
  pods,
  sharedVolumes,
  vms,
  type CreatePod,
  type CreateSharedVolume,
  type CreateVm,
  type ExposedService,
  type Pod,
  type PodStatus,
  type SharedVolume,
  type Vm,
} from '@atoll/contracts/pods';
import { teamChanged } from '@atoll/contracts/teams';
import { Outbox } from '@atoll/events';
import { InProcessBus } from '@atoll/rpc';
import { Sealer } from '@atoll/seal';
import { MachineWorkers } from '@atoll/state-machine';
import {
  aTeam,
  memberOf,
  ownPorts,
  OwnerOfTeams,
  ServiceUnderTest,
  startServiceUnderTest,
  timeoutFactor,
  type StartedService,
} from '@atoll/testing';
import { ClusterWatch } from './watch/cluster-watch.js';
import { Clusters } from './cluster/clusters.js';
import { Neighbours } from './neighbours-fixture.js';
import type { PodsSettings } from './pods-settings.js';
import { service } from './service.js';
import { VmWatch } from './vms/vm-watch.js';

export { errorOf } from '@atoll/testing';

type UsageFact = UsageTold['facts'][number];

/** Of what comes within milliseconds on an idle machine. */
const patienceMs = 60_000 * timeoutFactor;

/** Between two looks at what comes by itself: each costs the statements of a whole round of the workers. */
const pauseMs = 20;

const told = ['pods.usage_told', 'pods.vm_changed', 'pods.user_keys_changed', 'teams.team_deletion_answered'];

/** A team as the service was told of it, a member of it who may use resources, and a subscription. */
export interface ToldTeam {
  team_id: string;
  workspace_id: string;
  member: Partial<UserCaller>;
  subscription_id: string;
}

/**
 * The pods service on a database of its own and on simulated clusters, with specs in the place of the gateway and of
 * the other services. Unless `isRunning`, nothing is done by itself: `work` does what is due, `settle` lets time pass
 * until all is at rest.
 */
export class PodsFixture extends ServiceUnderTest {
  private volumes = 0;
  private vms = 0;

  private constructor(
    started: StartedService,
    readonly neighbours: Neighbours,
    readonly owner: OwnerOfTeams,
  ) {
    super(started);
  }

  static async start(options: Partial<PodsSettings> & { isRunning?: boolean } = {}): Promise<PodsFixture> {
    const { isRunning = false, ...given } = options;
    const bus = new InProcessBus();
    const owner = new OwnerOfTeams(bus);
    const neighbours = new Neighbours(bus);
    const workers = { isIdle: !isRunning, pollMs: 50 };
    const settings = {
      sealKeys: Sealer.createKeys(),
      simulatedPullMs: 0,
      sshPort: 'off',
      restartMs: 50,
      sweepMs: 200,
      exposedPorts: ownPorts(),
      workers,
      ...given,
    };
    return new PodsFixture(await startServiceUnderTest(service, { bus, listensTo: told, settings }), neighbours, owner);
  }

  async team(role: TeamRole = 'member', vgpus = 4): Promise<ToldTeam> {
    const team = aTeam();
    await this.tell(teamChanged, team);
    const workspace_id = team.workspaces[0]?.id ?? '';
    const { subscription_id } = this.neighbours.subscription(team.team_id, workspace_id, vgpus);
    return { team_id: team.team_id, workspace_id, member: memberOf(team.team_id, role), subscription_id };
  }

  create({ team_id, subscription_id, member }: ToldTeam, more: Partial<CreatePod> = {}): Promise<Pod> {
    return this.call(pods.create, { team_id, subscription_id, name: 'job', image: 'python:3.13', ...more }, member);
  }

  /** A pod that runs. */
  async running(team: ToldTeam, more: Partial<CreatePod> = {}): Promise<Pod> {
    return this.until(await this.create(team, more), 'running');
  }

  act({ pod_name }: { pod_name: string }, action: 'start' | 'stop' | 'restart', { member }: ToldTeam): Promise<Pod> {
    return this.call(pods.act, { pod_name, action }, member);
  }

  pod({ pod_name }: { pod_name: string }): Promise<Pod> {
    return this.call(pods.get, { pod_name });
  }

  /** Works until the pod has come to this status. Throws where that takes too long. */
  async until(pod: { pod_name: string }, status: PodStatus): Promise<Pod> {
    return this.untilIs(pod, (found) => found.status === status);
  }

  untilIs(pod: { pod_name: string }, isAsItShould: (pod: Pod) => boolean): Promise<Pod> {
    return this.workUntil(
      () => this.pod(pod),
      isAsItShould,
      () => this.get(ClusterWatch).sweep('1'),
    );
  }

  createVolume({ team_id, member }: ToldTeam, more: Partial<CreateSharedVolume> = {}): Promise<SharedVolume> {
    this.volumes += 1;
    return this.call(
      sharedVolumes.create,
      { team_id, region_id: '1', name: `volume-${this.volumes}`, size_in_gb: 10, ...more },
      member,
    );
  }

  /** A volume that can be mounted. */
  async volume(team: ToldTeam, more: Partial<CreateSharedVolume> = {}): Promise<SharedVolume> {
    return this.untilVolume(await this.createVolume(team, more), ({ status }) => status === 'active');
  }

  /** Works until a volume is as it should be. */
  untilVolume(
    { volume_id }: { volume_id: string },
    isAsItShould: (found: SharedVolume) => boolean,
  ): Promise<SharedVolume> {
    return this.workUntil(() => this.call(sharedVolumes.get, { volume_id }), isAsItShould);
  }

  async untilVolumeDeleted({ volume_id }: { volume_id: string }): Promise<void> {
    await this.untilDeletedBy('SELECT state FROM shared_volume WHERE volume_id = $1', volume_id);
  }

  createVm({ team_id, member }: ToldTeam, more: Partial<CreateVm> = {}): Promise<Vm> {
    const input = { team_id, region_id: '1', name: 'head-node', flavour: 'small', image: 'debian:13', ...more };
    return this.call(vms.create, input, member);
  }

  vm({ instance_id }: { instance_id: string }): Promise<Vm> {
    return this.call(vms.get, { instance_id });
  }

  /** A VM that runs. */
  async runningVm(team: ToldTeam, more: Partial<CreateVm> = {}): Promise<Vm> {
    const vm = await this.createVm(team, { name: `running-${(this.vms += 1)}`, ...more });
    return this.untilVm(vm, ({ status }) => status === 'running');
  }

  /** Works until a VM is as it should be. */
  untilVm(vm: { instance_id: string }, isAsItShould: (found: Vm) => boolean): Promise<Vm> {
    return this.workUntil(
      () => this.vm(vm),
      isAsItShould,
      () => this.get(VmWatch).look('1'),
    );
  }

  async untilVmDeleted({ instance_id }: { instance_id: string }): Promise<void> {
    await this.untilDeletedBy('SELECT state FROM vm WHERE instance_id = $1', instance_id);
  }

  /** Works until an exposed service is as it should be. */
  untilExposed(
    { service_id }: { service_id: string },
    isAsItShould: (found: ExposedService) => boolean,
  ): Promise<ExposedService> {
    return this.workUntil(() => this.call(exposedServices.find, { service_id }), isAsItShould);
  }

  /** Works until an exposed service is no more. */
  async untilUnexposed({ service_id }: { service_id: string }): Promise<void> {
    await this.untilDeletedBy('SELECT state FROM exposure WHERE service_id = $1', service_id);
  }

  async untilDeleted({ pod_id }: { pod_id: string }): Promise<void> {
    await this.untilDeletedBy('SELECT state FROM pod WHERE pod_id = $1', pod_id);
  }

  private async untilDeletedBy(query: string, id: string): Promise<void> {
    await this.workUntil(
      () => this.query<{ state: string }>(query, [id]),
      ([row]) => row?.state === 'deleted',
    );
  }

  /** Throws where it takes too long. `look`: what besides the workers finds what has changed. */
  private async workUntil<Found>(
    read: () => Promise<Found>,
    isAsItShould: (found: Found) => boolean,
    look = () => Promise.resolve(),
  ): Promise<Found> {
    for (const end = Date.now() + patienceMs; ;) {
      await this.work();
      const found = await read();
      if (isAsItShould(found)) return found;
      if (Date.now() > end) throw new Error(`Still ${JSON.stringify(found)}.`);
      await this.hurry();
      await look();
      await delay(pauseMs);
    }
  }

  /** What waits for another look has it now. */
  async hurry(): Promise<void> {
    await this.query(
      `WITH exposures AS (
         UPDATE exposure SET due_at = clock_timestamp(), parked_until = NULL WHERE parked_until IS NOT NULL
       ), vms AS (
         UPDATE vm SET due_at = clock_timestamp(), parked_until = NULL WHERE deadline_at IS NOT NULL AND parked_until IS NOT NULL
       ), volumes AS (
         UPDATE shared_volume SET due_at = clock_timestamp(), parked_until = NULL WHERE parked_until IS NOT NULL
       )
       UPDATE pod SET due_at = clock_timestamp(), parked_until = NULL WHERE deadline_at IS NOT NULL AND parked_until IS NOT NULL`,
    );
  }

  work(): Promise<void> {
    return this.get(MachineWorkers).settle();
  }

  get simulated(): Clusters {
    return this.get(Clusters);
  }

  /**
   * What billing was told of a resource, once all events are published, in order: of one id the first alone, as there.
   */
  async usageOf(resourceId: string): Promise<UsageFact[]> {
    const told = await this.published<UsageTold>('pods.usage_told');
    const facts = told.flatMap((event) => event.facts).filter(({ resource_id }) => resource_id === resourceId);
    return facts
      .filter(({ id }, at) => facts.findIndex((other) => other.id === id) === at)
      .toSorted((one, other) => one.time.localeCompare(other.time) || (one.sequence ?? 0) - (other.sequence ?? 0));
  }

  /** What was told by this name, once all events are published. */
  async published<Payload>(name: string): Promise<Payload[]> {
    while ((await this.get(Outbox).pending()) > 0) await delay(pauseMs);
    return this.events.filter((event) => event.name === name).map(({ payload }) => payload as Payload);
  }
}
