import { type TeamRole, type UserCaller } from '@atoll/contracts';
import {
  nodes,
  pools,
  regions,
  subscriptions,
  workloads,
  type CreatePool,
  type Gpu,
  type GpuaasPath,
  type GpuNode,
  type MeteredSubscription,
  type Pool,
  type Subscribe,
  type Subscription,
  type Workload,
} from '@atoll/contracts/gpuaas';
import { podHoldings, type ClusterHoldings } from '@atoll/contracts/pods';
import { teamChanged } from '@atoll/contracts/teams';
import { newId } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { InProcessBus } from '@atoll/rpc';
import { MachineWorkers } from '@atoll/state-machine';
import {
  aTeam,
  memberOf,
  OwnerOfTeams,
  ServiceUnderTest,
  startServiceUnderTest,
  type StartedService,
} from '@atoll/testing';
import { TeamCapacity } from './capacity/team-capacity.js';
import { ConnectionSource } from './connections/connection-source.js';
import { NodeDriver } from './driver/node-driver.js';
import type { GpuaasSettings } from './gpuaas-settings.js';
import { MetricsSource } from './metrics/metrics-source.js';
import { service } from './service.js';

export { errorOf } from '@atoll/testing';

const told = [
  'gpuaas.usage_told',
  'gpuaas.team_capacity_changed',
  'gpuaas.region_added',
  'gpuaas.cluster_changed',
  'gpuaas.baremetal_changed',
  'gpuaas.baremetal_node_set_aside',
  'teams.team_deletion_answered',
];
const machines = ['gpu', 'node', 'subscription', 'workload'];
/** In SQL: on its way, though it has no deadline, or none yet. */
const withoutDeadline = `state IN ('draining', 'preparing', 'initialising')`;

interface Doubles {
  driver?: NodeDriver;
  metrics?: MetricsSource;
  connections?: ConnectionSource;
}

/** A platform without pods. */
class NoPods extends ConnectionSource {
  read(): Promise<Map<string, never[]>> {
    return Promise.resolve(new Map<string, never[]>());
  }
}

/** A team as the service was told of it, and a member of it who may use resources. */
export interface ToldTeam {
  team_id: string;
  workspace_id: string;
  member: Partial<UserCaller>;
}

export interface Inventory {
  gpuaas_id: string;
  node_id: string;
  gpu_ids: string[];
}

/**
 * The gpuaas service on a database of its own, with specs in the place of the gateway and of the other services. Unless
 * `isRunning`, nothing is done by itself: `work` does what is due, `pass` lets time pass, `settle` both until all is at
 * rest.
 */
export class GpuaasFixture extends ServiceUnderTest {
  private constructor(
    started: StartedService,
    readonly owner: OwnerOfTeams,
    /** What pods says that the cluster of a GPU service keeps: nothing where it is not here. */
    readonly keptOn: Map<string, ClusterHoldings | 'away'>,
  ) {
    super(started);
  }

  /** `driver`, `metrics` and `connections` stand in for nodes, metrics and pods. */
  static async start(
    options: Partial<GpuaasSettings> & Doubles & { isRunning?: boolean } = {},
  ): Promise<GpuaasFixture> {
    const { isRunning = false, driver, metrics, connections, ...given } = options;
    const bus = new InProcessBus();
    const owner = new OwnerOfTeams(bus);
    const keptOn = new Map<string, ClusterHoldings | 'away'>();
    bus.serve(podHoldings.ofGpuaas.subject, ({ payload }, respond) => {
      const kept = keptOn.get((JSON.parse(payload) as GpuaasPath).gpuaas_id) ?? { vms: 0, shared_volumes: 0 };
      respond(
        kept === 'away'
          ? { error: new AppError('unavailable', 'The pods service is away.') }
          : { json: JSON.stringify(kept) },
      );
    });
    const doubles = [
      [NodeDriver, driver],
      [MetricsSource, metrics],
      [ConnectionSource, connections ?? new NoPods()],
    ] as const;
    const started = await startServiceUnderTest(service, {
      bus,
      listensTo: told,
      settings: { simulatedSwitchMs: 0, workers: { isIdle: !isRunning, pollMs: 50 }, ...given },
      providers: doubles.flatMap(([provide, useValue]) => (useValue ? [{ provide, useValue }] : [])),
    });
    return new GpuaasFixture(started, owner, keptOn);
  }

  async team(role: TeamRole = 'member'): Promise<ToldTeam> {
    const team = aTeam();
    await this.tell(teamChanged, team);
    return { team_id: team.team_id, workspace_id: team.workspaces[0]?.id ?? '', member: memberOf(team.team_id, role) };
  }

  /** A region, a GPU service and a node that is ready. */
  async inventory(board = 'A100-80GB', count = 1, nodeName = `node-${newId()}`): Promise<Inventory> {
    const { region_id } = await this.call(regions.create, { region_name: `region-${newId()}` });
    const { gpuaas_id } = await this.call(regions.createGpuaas, { region_id, name: 'a' });
    const { node_id, gpus } = await this.call(nodes.register, {
      gpuaas_id,
      node_name: nodeName,
      gpus: [{ board, count }],
    });
    await this.call(nodes.initialise, { node_id });
    await this.work();
    // A step that took too long on a busy machine is tried again.
    if ((await this.node(node_id)).status === 'initialising') await this.settle();
    const { status } = await this.node(node_id);
    if (status !== 'ready') throw new Error(`The node is ${status}.`);
    return { gpuaas_id, node_id, gpu_ids: gpus.map(({ gpu_id }) => gpu_id) };
  }

  /** A pool of all GPUs of a new node, at rest; MIG with all profiles unless said. */
  async pool(
    terms: Partial<CreatePool> = {},
    { board = 'A100-80GB', count = 1, nodeName }: { board?: string; count?: number; nodeName?: string } = {},
  ): Promise<Pool & Inventory> {
    const inventory = await this.inventory(board, count, nodeName);
    const pool = await this.poolOn(inventory, inventory.gpu_ids, terms);
    await this.settle();
    return pool;
  }

  /** A pool of some GPUs of a node. */
  async poolOn(inventory: Inventory, gpu_ids: string[], terms: Partial<CreatePool> = {}): Promise<Pool & Inventory> {
    const isMig = (terms.mechanism ?? 'mig') === 'mig';
    const pool = await this.call(pools.create, {
      gpuaas_id: inventory.gpuaas_id,
      pool_name: `pool-${newId()}`,
      gpu_ids,
      sharing_mode: 'Spatial',
      mechanism: 'mig',
      ...(isMig && { profiles: ['1g.10gb', '2g.20gb', '3g.40gb', '4g.40gb', '7g.80gb'] }),
      ...terms,
    });
    return { ...inventory, ...pool };
  }

  subscribe(
    { team_id, member }: ToldTeam,
    terms: Omit<Subscribe, 'team_id' | 'vgpus'> & { vgpus?: number },
  ): Promise<Subscription> {
    return this.call(subscriptions.subscribe, { team_id, vgpus: 1, ...terms }, member);
  }

  unsubscribe(
    { member }: ToldTeam,
    { subscription_id }: { subscription_id: string },
    force = false,
  ): Promise<Subscription> {
    return this.call(subscriptions.unsubscribe, { subscription_id, force }, member);
  }

  start({ member }: ToldTeam, { subscription_id }: { subscription_id: string }, vgpus = 1): Promise<Workload> {
    return this.call(workloads.start, { subscription_id, name: 'job', vgpus }, member);
  }

  stopWorkload({ member }: ToldTeam, { workload_id }: { workload_id: string }): Promise<Workload> {
    return this.call(workloads.stop, { workload_id }, member);
  }

  async subscription(
    { team_id }: ToldTeam,
    { subscription_id }: { subscription_id: string },
  ): Promise<MeteredSubscription> {
    const { data } = await this.call(subscriptions.list, { team_id, subscription_id });
    if (!data[0]) throw new Error('There is no such subscription.');
    return data[0];
  }

  node(node_id: string): Promise<GpuNode> {
    return this.call(nodes.get, { node_id });
  }

  async gpu({ node_id }: { node_id: string }, at = 0): Promise<Gpu> {
    const gpu = (await this.node(node_id)).gpus[at];
    if (!gpu) throw new Error('There is no such GPU.');
    return gpu;
  }

  /** Does what is due, until nothing is. */
  work(): Promise<void> {
    return this.get(MachineWorkers).settle();
  }

  /** As if so much time had passed. Rows are locked in the order of their keys, as the service locks them. */
  async pass(seconds: number): Promise<void> {
    const back = `interval '${seconds} seconds'`;
    for (const table of machines) {
      const key = `${table}_id`;
      await this.query(
        `UPDATE ${table} SET due_at = due_at - ${back}, parked_until = parked_until - ${back}, deadline_at = deadline_at - ${back},
           claimed_until = claimed_until - ${back}
         WHERE ${key} IN (
           SELECT ${key} FROM ${table} WHERE due_at IS NOT NULL OR parked_until IS NOT NULL ORDER BY ${key} FOR NO KEY UPDATE
         )`,
      );
    }
    await this.query(`UPDATE simulated_device SET ready_at = ready_at - ${back} WHERE ready_at IS NOT NULL`);
  }

  /** Until nothing is on its way any more; throws if that takes longer than the deadlines allow. */
  async settle(): Promise<void> {
    for (let seconds = 1, passed = 0; passed < 900; passed += seconds, seconds = Math.min(10, seconds + 1)) {
      await this.work();
      const [{ transient = 0 } = {}] = await this.query<{ transient: number }>(
        machines
          .map(
            (table) =>
              `SELECT count(*)::int AS transient FROM ${table} WHERE deadline_at IS NOT NULL OR ${withoutDeadline}`,
          )
          .join(' UNION ALL '),
      ).then((rows) => [{ transient: rows.reduce((sum, row) => sum + row.transient, 0) }]);
      if (transient === 0) {
        await this.get(TeamCapacity).tell();
        return;
      }
      await this.pass(seconds);
    }
    throw new Error('Something does not come to rest.');
  }
}
