import { nodes, subscriptions, type CreatePool, type Pool } from '@atoll/contracts/gpuaas';
import { Statements, type Transactions } from '@atoll/database';
import { isAppError, type AppError } from '@atoll/errors';
import { MachineWorker, MachineWorkers, type DurableMachine, type MachineRow } from '@atoll/state-machine';
import { allowErrors, timeoutFactor } from '@atoll/testing';
import { DataSource } from 'typeorm';
import { betweenLookAndWriting } from '../allocation/held-gpus-fixture.js';
import { SimulatedFaults, type FaultKind, type SimulatedOperation } from '../driver/simulated-faults.js';
import { GpuSteps } from '../sharing/gpu-steps.js';
import { GpuaasFixture, type Inventory, type ToldTeam } from '../gpuaas-fixture.js';
import { NodeSteps } from '../nodes/node-steps.js';
import { SubscriptionSteps } from '../subscriptions/subscription-steps.js';
import { WorkloadSteps } from '../subscriptions/workload-steps.js';

const stepMs = 400 * timeoutFactor;

/** What may happen. Numbers choose among what there is, whatever that is. */
export type Happening =
  | { kind: 'subscribe'; pool: number; vgpus: number; profile: number }
  | { kind: 'unsubscribe'; subscription: number; force: boolean }
  | { kind: 'resize'; subscription: number; vgpus: number }
  | { kind: 'start'; subscription: number; vgpus: number }
  | { kind: 'stop'; workload: number }
  /** One that waits is withdrawn while leases that were planned for it and others are about to be written. */
  | { kind: 'withdraw while served'; waiting: number }
  | { kind: 'work'; machine: number }
  | { kind: 'crash'; machine: number }
  | { kind: 'pass'; seconds: number }
  | { kind: 'fault'; operation: SimulatedOperation; fault: FaultKind; times: number }
  | { kind: 'mend' }
  | { kind: 'cordon'; isOn: boolean }
  | { kind: 'reset' }
  | { kind: 'at once'; all: Happening[] };

/** One node with three GPUs, a pool on each, and a team that does with them whatever it likes. */
export class World {
  readonly subscriptionIds: string[] = [];
  readonly workloadIds: string[] = [];
  private readonly machines: DurableMachine<MachineRow>[];

  private constructor(
    readonly fixture: GpuaasFixture,
    readonly team: ToldTeam,
    readonly pools: readonly (Pool & Inventory)[],
    readonly nodeName: string,
  ) {
    this.machines = [
      fixture.get(GpuSteps),
      fixture.get(NodeSteps),
      fixture.get(SubscriptionSteps),
      fixture.get(WorkloadSteps),
    ];
  }

  static startFixture(): Promise<GpuaasFixture> {
    return GpuaasFixture.start({
      workers: { isIdle: true, stepMs },
      returnRetryMs: 2_000,
      initRetryMs: 2_000,
      // Virtual time does not age the rows of a history, so the limit would never lift.
      mostReturns: 1_000,
    });
  }

  static async make(fixture: GpuaasFixture): Promise<World> {
    await fixture.query('TRUNCATE region, simulated_device, simulated_fault, capacity_change, machine_history CASCADE');
    (fixture.events as unknown[]).length = 0;
    const team = await fixture.team();
    const fallback = { allow_fallback: true, temporal_replicas: 8 };
    const terms: Partial<CreatePool>[] = [
      { profiles: ['1g.10gb', '3g.40gb'], ...fallback },
      { mechanism: 'mps', replicas: 2, ...fallback, temporal_replicas: 4 },
      { mechanism: 'mps', replicas: 2, overcommit: 3, ...fallback, temporal_replicas: 4 },
    ];
    const nodeName = `world-${Date.now()}`;
    const inventory = await fixture.inventory('A100-80GB', terms.length, nodeName);
    const pools: (Pool & Inventory)[] = [];
    for (const [at, term] of terms.entries())
      pools.push(await fixture.poolOn(inventory, [inventory.gpu_ids[at] ?? ''], term));
    await fixture.settle();
    const world = new World(fixture, team, pools, nodeName);
    // Something to run workloads on.
    for (const [pool, vgpus] of [
      [2, 6],
      [1, 1],
    ] as const)
      await world.happen({ kind: 'subscribe', pool, vgpus, profile: 0 });
    await fixture.settle();
    return world;
  }

  /**
   * What is looked at after each happening is parsed and planned once: unprepared it takes longer than what happens.
   */
  look<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.fixture.get(Statements).query<Row>(sql, values);
  }

  /** Does it. A refusal is an answer like any other; a bug is not. */
  async happen(what: Happening): Promise<AppError | undefined> {
    try {
      await this.act(what);
      return undefined;
    } catch (error) {
      if (!isAppError(error) || error.code === 'internal') throw error;
      return error;
    }
  }

  /** The number of the pool that something is asked of, and how many vGPUs more; undefined for what asks for none. */
  async askedOf(what: Happening): Promise<{ pool: number; vgpus: number } | undefined> {
    if (what.kind === 'subscribe') {
      const pool = what.pool % this.pools.length;
      // Entitlements are not leases: what is refused there follows another rule.
      return this.pools[pool]?.overcommit === 1 ? { pool, vgpus: what.vgpus } : undefined;
    }
    if (what.kind !== 'start' && what.kind !== 'resize') return undefined;
    const [held] = await this.look<{ pool_id: string; vgpus: number }>(
      'SELECT pool_id, vgpus FROM subscription WHERE subscription_id = $1',
      [chosen(this.subscriptionIds, what.subscription) ?? '1'],
    );
    const pool = this.pools.findIndex(({ pool_id }) => pool_id === held?.pool_id);
    if (!held || (what.kind === 'start') !== (this.pools[pool]?.overcommit !== 1)) return undefined;
    return { pool, vgpus: what.kind === 'start' ? what.vgpus : what.vgpus - held.vgpus };
  }

  /** Nothing goes wrong any more, and what was begun comes to its end. */
  async rest(): Promise<void> {
    await this.fixture.get(SimulatedFaults).mend(this.nodeName);
    await this.fixture.query(`UPDATE simulated_device SET holders = (
      SELECT coalesce(array_agg(holder), '{}') FROM unnest(holders) holder WHERE EXISTS (SELECT FROM lease WHERE lease_id::text = holder)
    )`);
    for (let round = 0; round < 12; round += 1) {
      // A node that failed and was cordoned is initialised by hand alone; it may fail by what was on its way when nodes
      // were mended.
      const failed = await this.fixture.query<{ node_id: string }>(
        `SELECT node_id::text FROM node WHERE state = 'cordoned_failed'`,
      );
      for (const node of failed) await this.fixture.call(nodes.uncordon, node);
      await this.fixture.settle();
      if (await this.isAtRest()) return;
      await this.fixture.pass(30);
    }
    const left = await this.fixture.query(
      `SELECT state, due_at, last_error FROM node UNION ALL SELECT state, due_at, last_error FROM gpu`,
    );
    throw new Error(`Something stays between two states: ${JSON.stringify(left)}`);
  }

  /** Gives back whatever is held. */
  async giveBackAll(): Promise<void> {
    for (const subscription_id of this.subscriptionIds) {
      await this.fixture.call(subscriptions.unsubscribe, { subscription_id, force: true }, this.team.member);
    }
    const { status } = await this.fixture.node(this.pools[0]?.node_id ?? '');
    if (status === 'cordoned') await this.fixture.call(nodes.uncordon, { node_id: this.pools[0]?.node_id ?? '' });
    await this.rest();
  }

  /** Every node is in service, and no GPU is where it has to leave again. */
  private async isAtRest(): Promise<boolean> {
    await this.fixture.work();
    const rows = await this.look(
      `SELECT FROM node WHERE state NOT IN ('ready', 'cordoned') UNION ALL SELECT FROM gpu WHERE due_at IS NOT NULL OR parked_until IS NOT NULL OR state = 'offline'`,
    );
    return rows.length === 0;
  }

  private async act(what: Happening): Promise<void> {
    const { fixture, team } = this;
    switch (what.kind) {
      case 'subscribe': {
        const pool = chosen(this.pools, what.pool);
        if (!pool) return;
        const profile = chosen(pool.profiles, what.profile) ?? '';
        const { subscription_id } = await fixture.subscribe(team, {
          pool_id: pool.pool_id,
          vgpus: what.vgpus,
          profile,
        });
        this.subscriptionIds.push(subscription_id);
        return;
      }
      case 'unsubscribe':
        await fixture.unsubscribe(
          team,
          { subscription_id: chosen(this.subscriptionIds, what.subscription) ?? '1' },
          what.force,
        );
        return;
      case 'resize': {
        const subscription_id = chosen(this.subscriptionIds, what.subscription) ?? '1';
        await fixture.call(subscriptions.resize, { subscription_id, vgpus: what.vgpus }, team.member);
        return;
      }
      case 'start': {
        const subscription_id = chosen(this.subscriptionIds, what.subscription) ?? '1';
        this.workloadIds.push((await fixture.start(team, { subscription_id }, what.vgpus)).workload_id);
        return;
      }
      case 'stop':
        await fixture.stopWorkload(team, { workload_id: chosen(this.workloadIds, what.workload) ?? '1' });
        return;
      default:
        await this.actOnNodes(what);
    }
  }

  private async withdrawWhileServed(number: number): Promise<void> {
    const { fixture, team } = this;
    const waiting = await fixture.query<{ subscription_id: string; workload_id: string | null }>(
      'SELECT subscription_id, workload_id FROM waiting_request WHERE refusal IS NULL ORDER BY waiting_id',
    );
    const request = chosen(waiting, number);
    if (!request) return;
    const { subscription_id, workload_id } = request;
    const serve = async () => {
      for (const worker of fixture.get(MachineWorkers).workers.slice(2)) await worker.settle();
    };
    const withdraw = () =>
      workload_id === null
        ? fixture.unsubscribe(team, { subscription_id }, true)
        : fixture.stopWorkload(team, { workload_id });
    await betweenLookAndWriting(fixture, serve, withdraw);
  }

  private async actOnNodes(what: Happening): Promise<void> {
    const { fixture } = this;
    const node_id = this.pools[0]?.node_id ?? '';
    switch (what.kind) {
      case 'work':
        if (what.machine >= this.machines.length) await fixture.work();
        else await chosen(fixture.get(MachineWorkers).workers, what.machine)?.settle();
        return;
      case 'crash':
        await this.crash(chosen(this.machines, what.machine));
        return;
      case 'pass':
        await fixture.pass(what.seconds);
        return;
      case 'fault':
        await fixture.get(SimulatedFaults).inject(this.nodeName, what.operation, what.fault, what.times);
        return;
      case 'mend':
        await fixture.get(SimulatedFaults).mend(this.nodeName);
        return;
      case 'cordon':
        await fixture.call(what.isOn ? nodes.cordon : nodes.uncordon, { node_id });
        return;
      case 'reset':
        await fixture.call(nodes.reset, { node_id });
        return;
      case 'withdraw while served':
        await this.withdrawWhileServed(what.waiting);
        return;
      case 'at once':
        await Promise.all(what.all.map((one) => this.happen(one)));
        return;
      default:
        throw new Error(`Nobody knows how to ${what.kind}.`);
    }
  }

  /** A process does the work of what is due, and dies before any of it is kept. */
  private async crash(machine: DurableMachine<MachineRow> | undefined): Promise<void> {
    if (!machine) return;
    allowErrors(/the process died/);
    const dead = { run: () => Promise.reject(new Error('the process died')) } as unknown as Transactions;
    await new MachineWorker(machine, this.fixture.get(DataSource), dead, { service: 'gpuaas', stepMs }).settle();
  }
}

function chosen<T>(from: readonly T[], number: number): T | undefined {
  return from[number % from.length];
}
