import { expect, jest } from '@jest/globals';
import { newId } from '@atoll/database';
import type { ToldTeam } from '../gpuaas-fixture.js';
import type { BaremetalFixture } from './baremetal-fixture.js';
import type { HostDriver } from './hosts/host-driver.js';
import { SimulatedHosts } from './hosts/simulated-hosts.js';

export const crashableOperations = [
  'createUser',
  'placeKeys',
  'setPassword',
  'verify',
  'revoke',
] as const satisfies (keyof HostDriver)[];
type CrashableOperation = (typeof crashableOperations)[number];

export type Command =
  | { kind: 'request'; gpus: number }
  | { kind: 'end'; which: number }
  | { kind: 'settle' }
  | { kind: 'work'; steps: number }
  | { kind: 'together'; workers: number }
  | { kind: 'pass'; seconds: number }
  | { kind: 'break'; host: number; faults: string }
  | { kind: 'offer'; host: number; isOffered: boolean }
  | { kind: 'crash'; operation: CrashableOperation; isAfter: boolean };

/** What the observer knows by itself of a request. */
interface Observed {
  instance_id: string;
  gpus: number;
  isEnded: boolean;
  wasActive: boolean;
  wasPlaced: boolean;
}

interface InstanceRow {
  instance_id: string;
  state: string;
  node_id: string | null;
  node_gpus: number | null;
  /** Whom the node says it holds. */
  holder: string | null;
  username: string;
  has_password: boolean;
}

const onHost = [
  'reaching',
  'creating_user',
  'placing_keys',
  'setting_password',
  'verifying',
  'active',
  'rolling_back',
  'cancelling',
  'releasing',
];
/** Of the hosts of a world: a small one and a large one. */
const gpusOfHosts = [2, 4];

/** A world of two hosts, and what its observer knows by itself of the requests for them. */
export class World {
  private readonly instances: Observed[] = [];
  private crash: { operation: CrashableOperation; isAfter: boolean } | undefined;

  private constructor(
    private readonly fixture: BaremetalFixture,
    private readonly team: ToldTeam,
    private readonly model: string,
    private readonly nodeIds: readonly string[],
  ) {}

  static async create(fixture: BaremetalFixture, team: ToldTeam, begun: readonly string[]): Promise<World> {
    const model = `law-${newId().slice(-10)}`;
    const nodeIds = [];
    for (const [at, gpu_count] of gpusOfHosts.entries()) {
      const specs = { gpu_model: model, gpu_count, cpu_cores: 64, memory_gb: 512 };
      nodeIds.push((await fixture.available(begun[at], { specs })).node_id);
    }
    return new World(fixture, team, model, nodeIds);
  }

  async obey(next: Command): Promise<void> {
    const nodeId = 'host' in next ? (this.nodeIds[next.host] ?? '') : '';
    switch (next.kind) {
      case 'request':
        return this.request(next.gpus);
      case 'end':
        return this.end(this.instances[next.which % Math.max(1, this.instances.length)]);
      case 'settle':
        return this.fixture.settle();
      case 'work':
        for (let step = 0; step < next.steps; step += 1) await this.fixture.workOnce();
        return;
      case 'together':
        await Promise.all(Array.from({ length: next.workers }, () => this.fixture.workOnce()));
        return;
      case 'pass':
        return this.fixture.pass(next.seconds);
      case 'break':
        return this.rename(nodeId, next.faults);
      case 'offer':
        return this.offer(nodeId, next.isOffered);
      case 'crash':
        this.crash = next;
    }
  }

  /** The next call of the operation is the last of its worker: what it would have written is lost. */
  watch(): void {
    const hosts = this.fixture.gpuaas.get(SimulatedHosts);
    for (const operation of crashableOperations) {
      const original = hosts[operation].bind(hosts);
      jest.spyOn(hosts, operation).mockImplementation(async (...inputs) => {
        if (this.crash?.operation !== operation) return original(...inputs);
        const { isAfter } = this.crash;
        this.crash = undefined;
        if (isAfter) await original(...inputs).catch(() => undefined);
        // A host is also cleaned by the worker of nodes.
        for (const table of ['baremetal_instance', 'baremetal_node']) {
          await this.fixture.gpuaas.query(
            `UPDATE ${table} SET claim_token = gen_random_uuid(), claimed_until = clock_timestamp() WHERE claim_token IS NOT NULL`,
          );
        }
      });
    }
  }

  /** What holds at every moment. */
  async check(): Promise<void> {
    const rows = await this.rows();
    for (const instance of this.instances) {
      const { state } = rows.get(instance.instance_id) ?? {};
      if (state === 'active') instance.wasActive = true;
      // Once active it is ended by its team alone.
      if (instance.wasActive) expect(instance.isEnded ? ['releasing', 'released'] : ['active']).toContain(state);
    }
    this.checkOrder(rows);
    const holding = [...rows.values()].filter(({ state }) => onHost.includes(state));
    // Each has a host to itself.
    expect(holding.map(({ holder }) => holder)).toEqual(holding.map(({ instance_id }) => instance_id));
    expect(new Set(holding.map(({ node_id }) => node_id)).size).toBe(holding.length);
    await this.checkHosts([...rows.values()]);
  }

  /** What holds once all is mended and at rest. */
  async checkEnd(): Promise<void> {
    await this.mend();
    await this.check();
    const found = await Promise.all(this.instances.map((instance) => this.fixture.instance(this.team, instance)));
    const nodes = await Promise.all(this.nodeIds.map((nodeId) => this.fixture.node(nodeId)));
    const active = found.filter(({ status }) => status === 'Active');
    for (const { status } of found)
      expect(['Requested', 'Active', 'Failed', 'Cancelled', 'Released']).toContain(status);
    expect(nodes.filter(({ status }) => status === 'In service')).toHaveLength(active.length);
    const free = nodes.filter(({ status }) => status === 'Available');
    expect(free).toHaveLength(nodes.length - active.length);
    for (const { status, specs } of found) {
      if (status === 'Requested')
        expect(free.filter((node) => node.specs.gpu_count >= (specs.gpu_count ?? 0))).toEqual([]);
    }
    for (const instance of active) {
      const { username, ssh_password: password } = await this.fixture.credentials(this.team, instance);
      const hosts = await Promise.all(this.nodeIds.map((node_id) => this.fixture.usersOf({ node_id })));
      expect(hosts.filter((users) => users[username]?.password === password)).toHaveLength(1);
    }
    for (const instance of this.instances) await this.end(instance);
    await this.fixture.settle();
    for (const node_id of this.nodeIds) expect(await this.fixture.usersOf({ node_id })).toEqual({});
    for (const instance of this.instances) {
      const billed = (await this.fixture.factsOf(instance)).map(({ quantity }) => quantity);
      expect(billed).toEqual(instance.wasActive ? ['1', '0'] : []);
    }
  }

  private async request(gpus: number): Promise<void> {
    const specs = { gpu_model: this.model, gpu_count: gpus };
    const { instance_id } = await this.fixture.request(this.team, { specs });
    this.instances.push({ instance_id, gpus, isEnded: false, wasActive: false, wasPlaced: false });
  }

  private async end(instance: Observed | undefined): Promise<void> {
    if (!instance) return;
    await this.fixture.end(this.team, instance);
    instance.isEnded = true;
  }

  private async rename(nodeId: string, faults: string): Promise<void> {
    await this.fixture.gpuaas.query('UPDATE baremetal_node SET name = $2 WHERE node_id = $1', [
      nodeId,
      `law-${newId()}.${faults}`,
    ]);
  }

  /** Nothing tells the requests that wait. */
  private async offer(nodeId: string, isOffered: boolean): Promise<void> {
    await this.fixture.gpuaas.query(
      'UPDATE baremetal_node SET is_maintenance = $2 WHERE node_id = $1 AND maintenance_code IS NULL',
      [nodeId, !isOffered],
    );
  }

  private async mend(): Promise<void> {
    this.crash = undefined;
    for (const nodeId of this.nodeIds) await this.rename(nodeId, '');
    for (let round = 0; round < 3; round += 1) {
      await this.endMaintenance();
      await this.fixture.settle();
      await this.fixture.pass(601);
      await this.fixture.settle();
    }
    await this.endMaintenance();
    await this.fixture.sweep();
    await this.fixture.settle();
  }

  /** As the operator does after failures in a row, also those of what was on its way when the hosts were mended. */
  private async endMaintenance(): Promise<void> {
    await this.fixture.gpuaas.query(
      `UPDATE baremetal_node SET is_maintenance = false, maintenance_code = NULL, failures = 0
       WHERE node_id = ANY ($1) AND coalesce(maintenance_code, 'failures') = 'failures'`,
      [this.nodeIds],
    );
  }

  private async rows(): Promise<Map<string, InstanceRow>> {
    const rows = await this.fixture.gpuaas.query<InstanceRow>(
      `SELECT i.instance_id, i.state, i.node_id, i.username, i.password IS NOT NULL AS has_password,
         n.gpu_count AS node_gpus, n.instance_id AS holder
       FROM baremetal_instance i LEFT JOIN baremetal_node n USING (node_id) WHERE i.instance_id = ANY ($1) ORDER BY i.instance_id`,
      [this.instances.map(({ instance_id }) => instance_id)],
    );
    return new Map(rows.map((row) => [row.instance_id, row]));
  }

  /** A request that was given a host has passed no earlier one that waits still and that the host would have fitted. */
  private checkOrder(rows: ReadonlyMap<string, InstanceRow>): void {
    for (const [at, instance] of this.instances.entries()) {
      const gpus = rows.get(instance.instance_id)?.node_gpus ?? null;
      if (gpus === null || instance.wasPlaced) continue;
      instance.wasPlaced = true;
      const passed = this.instances
        .slice(0, at)
        .filter((earlier) => rows.get(earlier.instance_id)?.state === 'requested');
      expect(passed.filter((earlier) => earlier.gpus <= gpus)).toEqual([]);
    }
  }

  /** Whoever may log in is known to the database, with a password, and holds this node. */
  private async checkHosts(rows: readonly InstanceRow[]): Promise<void> {
    for (const node_id of this.nodeIds) {
      const users = Object.keys(await this.fixture.usersOf({ node_id }));
      const known = rows.filter((row) => row.node_id === node_id && row.holder === row.instance_id && row.has_password);
      expect(known.map(({ username }) => username)).toEqual(expect.arrayContaining(users));
      expect(users.length).toBeLessThanOrEqual(1);
    }
  }
}
