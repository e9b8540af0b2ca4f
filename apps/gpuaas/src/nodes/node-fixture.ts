import { nodes, regions, type CreatePool, type GpuNode, type NodeStatus, type Pool } from '@atoll/contracts/gpuaas';
import { newId } from '@atoll/database';
import { SimulatedFaults } from '../driver/simulated-faults.js';
import type { GpuaasFixture } from '../gpuaas-fixture.js';

interface Transition {
  from_state: string | null;
  to_state: string;
  event: string | null;
  actor: string;
  reason: string | null;
  request_id: string | null;
}

export type NodeCommand = 'initialise' | 'reset' | 'cordon' | 'uncordon';

/** Nodes of a GPU service of their own: registered, told what to do, and broken. */
export class NodesUnderTest {
  private constructor(
    private readonly fixture: GpuaasFixture,
    readonly gpuaasId: string,
  ) {}

  static async of(fixture: GpuaasFixture): Promise<NodesUnderTest> {
    const { region_id } = await fixture.call(regions.create, { region_name: 'Kathmandu' });
    return new NodesUnderTest(fixture, (await fixture.call(regions.createGpuaas, { region_id, name: 'a' })).gpuaas_id);
  }

  register(node_name = `node-${newId()}`, gpus = [{ board: 'A100-80GB', count: 1 }]): Promise<GpuNode> {
    return this.fixture.call(nodes.register, { gpuaas_id: this.gpuaasId, node_name, gpus });
  }

  /** A pool with one GPU on each of so many new nodes, at rest. */
  async poolOver(count: number, terms: Partial<CreatePool>): Promise<{ pool: Pool; nodes: GpuNode[] }> {
    const made: GpuNode[] = [];
    for (let at = 0; at < count; at += 1) made.push(await this.nodeThatIs('ready'));
    const gpuIds = made.flatMap(({ gpus }) => gpus.map(({ gpu_id }) => gpu_id));
    const pool = await this.fixture.poolOn({ gpuaas_id: this.gpuaasId, node_id: '', gpu_ids: [] }, gpuIds, terms);
    await this.fixture.settle();
    return { pool, nodes: made };
  }

  command(name: NodeCommand, { node_id }: { node_id: string }, caller?: object): Promise<GpuNode> {
    return this.fixture.call(nodes[name], { node_id }, caller);
  }

  breakInit({ node_name }: GpuNode, kind: 'fail' | 'lie' | 'refuse' | 'hang', times = 1_000): Promise<void> {
    return this.fixture.get(SimulatedFaults).inject(node_name, 'init', kind, times);
  }

  mend({ node_name }: GpuNode): Promise<void> {
    return this.fixture.get(SimulatedFaults).mend(node_name);
  }

  /** A node in this status, by commands alone. */
  async nodeThatIs(status: NodeStatus): Promise<GpuNode> {
    const node = await this.register();
    if (status === 'registered') return node;
    if (status === 'init_failed') await this.breakInit(node, 'fail');
    await this.command('initialise', node);
    if (status === 'initialising') return this.fixture.node(node.node_id);
    await this.fixture.work();
    if (status === 'init_failed') await this.mend(node);
    if (status === 'cordoned') await this.command('cordon', node);
    const found = await this.fixture.node(node.node_id);
    if (found.status !== status) throw new Error(`The node is ${found.status}, not ${status}: ${found.reason}`);
    return found;
  }

  historyOf({ node_id }: GpuNode): Promise<Transition[]> {
    return this.fixture.query<Transition>(
      `SELECT from_state, to_state, event, actor, reason, request_id FROM machine_history WHERE machine = 'node' AND instance = $1 ORDER BY id`,
      [node_id],
    );
  }
}
