import { setTimeout as delay } from 'node:timers/promises';
import {
  baremetal,
  baremetalNodes,
  regions,
  type BaremetalCredentials,
  type BaremetalInstance,
  type BaremetalNode,
  type RegisterBaremetalNode,
  type RequestBaremetal,
} from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { Sealer } from '@atoll/seal';
import type { MachineWorkers } from '@atoll/state-machine';
import { timeoutFactor } from '@atoll/testing';
import { GpuaasFixture, type ToldTeam } from '../gpuaas-fixture.js';
import type { GpuaasSettings } from '../gpuaas-settings.js';
import type { BaremetalInstanceState } from '../model/baremetal-instance.machine.js';
import { BaremetalWorkers } from './baremetal-providers.js';

const tables = [
  ['baremetal_node', 'node_id'],
  ['baremetal_instance', 'instance_id'],
] as const;
const someSpecs = { gpu_model: 'H100-80GB', gpu_count: 8, cpu_cores: 128, memory_gb: 1024 };

/** Bare metal under test: `work` does what is due, `pass` lets time pass, `settle` both until all is at rest. */
export class BaremetalFixture {
  private constructor(
    readonly gpuaas: GpuaasFixture,
    readonly regionId: string,
  ) {}

  static async start(options: Partial<GpuaasSettings> & { isRunning?: boolean } = {}): Promise<BaremetalFixture> {
    const gpuaas = await GpuaasFixture.start({
      sealKeys: Sealer.createKeys(),
      allowLoopbackHosts: true,
      hostConnectMs: 5_000 * timeoutFactor,
      ...options,
    });
    const { region_id } = await gpuaas.call(regions.create, { region_name: `region-${newId()}` });
    return new BaremetalFixture(gpuaas, region_id);
  }

  stop(): Promise<void> {
    return this.gpuaas.stop();
  }

  private get workers(): MachineWorkers {
    return this.gpuaas.get(BaremetalWorkers);
  }

  team(): Promise<ToldTeam> {
    return this.gpuaas.team();
  }

  register(input: Partial<RegisterBaremetalNode> = {}): Promise<BaremetalNode> {
    const name = input.name ?? `metal-${newId()}`;
    return this.gpuaas.call(baremetalNodes.register, {
      name,
      region_id: this.regionId,
      host: `${newId()}.example`,
      driver: 'simulated',
      credential: { password: 'operator' },
      specs: someSpecs,
      ...input,
    });
  }

  /** A simulated node that is checked. Its name may say what goes wrong: see `SimulatedHosts`. */
  async available(faults = '', input: Partial<RegisterBaremetalNode> = {}): Promise<BaremetalNode> {
    const { node_id } = await this.register({ name: `metal-${newId()}.${faults}`, ...input });
    await this.work();
    let node = await this.node(node_id);
    // Where the machine is slow, a look may have been cut off, and is tried again.
    for (; node.status === 'Checking'; node = await this.node(node_id)) {
      await this.pass(5);
      await this.work();
    }
    if (node.status !== 'Available') throw new Error(`The node is ${node.status}: ${node.reason}`);
    return node;
  }

  node(node_id: string): Promise<BaremetalNode> {
    return this.gpuaas.call(baremetalNodes.get, { node_id });
  }

  request({ team_id, member }: ToldTeam, input: Partial<RequestBaremetal> = {}): Promise<BaremetalInstance> {
    const specs = { gpu_model: someSpecs.gpu_model };
    return this.gpuaas.call(
      baremetal.request,
      { team_id, name: 'training', region_id: this.regionId, specs, ...input },
      member,
    );
  }

  instance({ member }: ToldTeam, { instance_id }: { instance_id: string }): Promise<BaremetalInstance> {
    return this.gpuaas.call(baremetal.get, { instance_id }, member);
  }

  end({ member }: ToldTeam, { instance_id }: { instance_id: string }): Promise<BaremetalInstance> {
    return this.gpuaas.call(baremetal.end, { instance_id }, member);
  }

  credentials({ member }: ToldTeam, { instance_id }: { instance_id: string }): Promise<BaremetalCredentials> {
    return this.gpuaas.call(baremetal.credentials, { instance_id }, member);
  }

  /** An instance that came to rest. */
  async settled(team: ToldTeam, input: Partial<RequestBaremetal> = {}): Promise<BaremetalInstance> {
    const instance = await this.request(team, input);
    await this.settle();
    return this.instance(team, instance);
  }

  async work(): Promise<void> {
    let isDone = false;
    while (!isDone) {
      isDone = true;
      for (const worker of await this.workers.due()) while (await worker.doNext()) isDone = false;
    }
  }

  /** One due step of a machine, in the order in which workers would take it. Returns whether there was one. */
  async workOnce(): Promise<boolean> {
    for (const worker of await this.workers.due()) if (await worker.doNext()) return true;
    return false;
  }

  /**
   * Works step by step until the instance is in this state. Steps of other rows, such as a node that is due for its
   * check, come between where the machine is slow, and a step may have to be tried again; so steps are not counted.
   */
  async reach({ instance_id }: { instance_id: string }, wanted: BaremetalInstanceState): Promise<void> {
    for (let passed = 0; passed < 3_600;) {
      const rows = await this.gpuaas.query<{ state: string }>(
        'SELECT state FROM baremetal_instance WHERE instance_id = $1',
        [instance_id],
      );
      if (rows[0]?.state === wanted) return;
      if (await this.workOnce()) continue;
      await this.pass(5);
      passed += 5;
    }
    throw new Error(`The instance does not come to ${wanted}.`);
  }

  /** What a sweep finds. */
  sweep(): Promise<void> {
    return this.workers.settle();
  }

  /** As if so much time had passed. Locks the rows in the order in which the service does. */
  async pass(seconds: number): Promise<void> {
    const back = `interval '${seconds} seconds'`;
    for (const [table, key] of tables) {
      await this.gpuaas.query(
        `UPDATE ${table} SET due_at = due_at - ${back}, parked_until = parked_until - ${back}, deadline_at = deadline_at - ${back},
           claimed_until = claimed_until - ${back}
         WHERE ${key} IN (
           SELECT ${key} FROM ${table} WHERE due_at IS NOT NULL OR parked_until IS NOT NULL ORDER BY ${key} FOR NO KEY UPDATE
         )`,
      );
    }
  }

  /** Until nothing is on its way but requests that wait; throws if that takes longer than the deadlines allow. */
  async settle(): Promise<void> {
    for (let passed = 0; passed < 3_600; passed += 5) {
      await this.work();
      const rows = await this.gpuaas.query(
        `SELECT FROM baremetal_node WHERE deadline_at IS NOT NULL AND state <> 'reinstalling'
         UNION ALL SELECT FROM baremetal_instance WHERE deadline_at IS NOT NULL AND state <> 'requested'`,
      );
      if (rows.length === 0) return;
      await this.pass(5);
    }
    throw new Error('Something does not come to rest.');
  }

  /** The payloads of the events of this name, once there is what is wanted among them. */
  async heard<Payload>(name: string, isThere: (payloads: Payload[]) => boolean): Promise<Payload[]> {
    for (const deadline = Date.now() + 90_000 * timeoutFactor; Date.now() < deadline; await delay(10)) {
      const payloads = this.gpuaas.events
        .filter((event) => event.name === name)
        .map(({ payload }) => payload as Payload);
      if (isThere(payloads)) return payloads;
    }
    throw new Error(`${name} was not published as it should be.`);
  }

  /** Who may log in to a simulated host. */
  async usersOf({
    node_id,
  }: {
    node_id: string;
  }): Promise<Record<string, { password: string | null; keys: string[] }>> {
    const [host] = await this.gpuaas.query<{ users: Record<string, { password: string | null; keys: string[] }> }>(
      'SELECT users FROM simulated_host WHERE node_id = $1',
      [node_id],
    );
    return host?.users ?? {};
  }

  /** The facts that billing was told of an instance, in their order. */
  async factsOf({
    instance_id,
  }: {
    instance_id: string;
  }): Promise<{ quantity: string; sku: string; time: string; id: string }[]> {
    const rows = await this.gpuaas.query<{
      payload: { facts: { resource_id: string; quantity: string; sku: string; time: string; id: string }[] };
    }>(`SELECT payload FROM outbox WHERE event_name = 'gpuaas.usage_told'`);
    const told = this.gpuaas.events
      .filter(({ name }) => name === 'gpuaas.usage_told')
      .map(({ payload }) => payload as (typeof rows)[number]['payload']);
    const all = [...told, ...rows.map(({ payload }) => payload)].flatMap(({ facts }) => facts);
    return [
      ...new Map(
        all.filter(({ resource_id }) => resource_id === `baremetal:${instance_id}`).map((fact) => [fact.id, fact]),
      ).values(),
    ];
  }
}
