import { randomUUID } from 'node:crypto';
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
import { VirtualTime } from './virtual-time-fixture.js';

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
/** A node with GPUs in no pool, in the states to which registration and initialisation bring them; without history. */
const readyNode = `WITH node_made AS (
    INSERT INTO node (node_id, gpuaas_id, node_name, state, lane) OVERRIDING SYSTEM VALUE
    SELECT id, $1, $2, 'ready', id::text FROM nextval(pg_get_serial_sequence('node', 'node_id')) id RETURNING node_id
  ), devices_made AS (
    INSERT INTO simulated_device (uuid) SELECT unnest($4::text[])
  ), gpus_made AS (
    INSERT INTO gpu (node_id, uuid, board, state) SELECT node_id, uuid, $3, 'unpooled' FROM node_made, unnest($4::text[]) uuid RETURNING gpu_id
  )
  SELECT node_id, (SELECT array_agg(gpu_id::text ORDER BY gpu_id) FROM gpus_made) AS gpu_ids FROM node_made`;
/** The GPUs of a new pool as their preparation leaves them, with their devices; without its history. */
const preparePool = `WITH prepared AS (
    UPDATE gpu SET state = CASE asked_mode WHEN 'Spatial' THEN 'spatial' ELSE 'configured_temporal' END,
      entered_at = clock_timestamp(), revision = revision + 1
    WHERE pool_id = $1 AND state = 'preparing' RETURNING node_id, uuid, asked_mode, generation
  ), switched AS (
    UPDATE simulated_device SET mode = asked_mode, generation = prepared.generation, ready_at = clock_timestamp()
    FROM prepared WHERE simulated_device.uuid = prepared.uuid
  )
  UPDATE node SET due_at = NULL WHERE node_id IN (SELECT node_id FROM prepared)`;

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
  private readonly time = new VirtualTime(this);

  private constructor(
    started: StartedService,
    readonly owner: OwnerOfTeams,
    /** What pods says that the cluster of a GPU service keeps: nothing where it is not here. */
    readonly keptOn: Map<string, ClusterHoldings | 'away'>,
    /** Nodes are simulated, and nobody works at them but who calls `work`. */
    private readonly isQuiet: boolean,
  ) {
    super(started);
  }

  /**
   * `driver`, `metrics` and `connections` stand in for nodes, metrics and pods. `replicaOf` has the database, and is
   * stopped last.
   */
  static async start(
    options: Partial<GpuaasSettings> & Doubles & { isRunning?: boolean; replicaOf?: GpuaasFixture } = {},
  ): Promise<GpuaasFixture> {
    const { isRunning = false, driver, metrics, connections, replicaOf, ...given } = options;
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
      replicaOf,
      settings: { simulatedSwitchMs: 0, workers: { isIdle: !isRunning, pollMs: 50 }, ...given },
      providers: doubles.flatMap(([provide, useValue]) => (useValue ? [{ provide, useValue }] : [])),
    });
    return new GpuaasFixture(started, owner, keptOn, !driver && !isRunning);
  }

  async team(role: TeamRole = 'member'): Promise<ToldTeam> {
    const team = aTeam();
    await this.tell(teamChanged, team);
    return { team_id: team.team_id, workspace_id: team.workspaces[0]?.id ?? '', member: memberOf(team.team_id, role) };
  }

  /** A region, a GPU service and a node that is ready. */
  async inventory(board = 'A100-80GB', count = 1, nodeName = `node-${newId()}`): Promise<Inventory> {
    const [region] = await this.query<{ region_id: string }>(
      'INSERT INTO region (region_name) VALUES ($1) RETURNING region_id',
      [`region-${newId()}`],
    );
    const { region_id = '' } = region ?? {};
    const { gpuaas_id } = await this.call(regions.createGpuaas, { region_id, name: 'a' });
    const [made] = await this.query<{ node_id: string; gpu_ids: string[] }>(readyNode, [
      gpuaas_id,
      nodeName,
      board,
      Array.from({ length: count }, () => `GPU-${randomUUID()}`),
    ]);
    if (!made) throw new Error('There is no node.');
    return { gpuaas_id, ...made };
  }

  /** A pool of all GPUs of a new node, at rest; MIG with all profiles unless said. */
  async pool(
    terms: Partial<CreatePool> = {},
    { board = 'A100-80GB', count = 1, nodeName }: { board?: string; count?: number; nodeName?: string } = {},
  ): Promise<Pool & Inventory> {
    const inventory = await this.inventory(board, count, nodeName);
    const pool = await this.poolOn(inventory, inventory.gpu_ids, terms);
    if (this.isQuiet) await this.query(preparePool, [pool.pool_id]);
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

  /** As if so much time had passed. */
  pass(seconds: number): Promise<void> {
    return this.time.pass(seconds);
  }

  /** Does what is due for so long of virtual time. */
  async during(seconds: number): Promise<void> {
    for (let left = seconds; left > 0;) {
      await this.work();
      left -= await this.time.passToNext(2, left);
    }
    await this.work();
  }

  /** As `during`, until it holds, which may take so much virtual time at most. */
  async until(holds: () => Promise<boolean>, seconds = 300): Promise<void> {
    for (let left = seconds; left > 0;) {
      await this.work();
      if (await holds()) return;
      left -= await this.time.passToNext(2, left);
    }
    throw new Error(`It does not come about within ${seconds} s.`);
  }

  /** Until nothing is on its way any more; throws if that takes longer than the deadlines allow. */
  async settle(): Promise<void> {
    for (let least = 1, left = 900; left > 0; least = Math.min(10, least + 1)) {
      await this.work();
      const { transient, seconds, isUntold } = await this.time.onTheWay();
      if (transient === 0) {
        if (isUntold) await this.get(TeamCapacity).tell();
        return;
      }
      left -= await this.time.passTo(seconds, least, left);
    }
    throw new Error('Something does not come to rest.');
  }
}
