import { randomUUID } from 'node:crypto';
import { notFound, pageWindow, requirePlatformAdmin, type CallContext } from '@atoll/contracts';
import { type GpuNode, type ListNodes, type NodePage, type NodePath, type RegisterNode } from '@atoll/contracts/gpuaas';
import { Transactions, unique } from '@atoll/database';
import { AppError, invalidField } from '@atoll/errors';
import { boardNamed, boards } from '@atoll/gpu';
import { causeOf } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { GpuSteps } from '../sharing/gpu-steps.js';
import { PoolCatalogue } from '../sharing/pool-catalogue.js';
import { GpuaasEntity } from '../model/region.entity.js';
import { NodeReader, nodeStatusOf } from './node-reader.js';
import { NodeSteps } from './node-steps.js';
import { NodeEntity } from '../model/node.entity.js';
import type { NodeEvent, NodeState } from '../model/node.machine.js';

/** The states that allow each action of the operator, and the states in which it is already done. */
const commands = {
  initialise: {
    event: 'INITIALISE',
    from: ['registered', 'init_failed', 'cordoned_failed'],
    already: ['initialising'],
  },
  reset: { event: 'RESET', from: ['registered', 'ready', 'init_failed', 'cordoned', 'cordoned_failed'], already: [] },
  cordon: { event: 'CORDON', from: ['ready', 'init_failed'], already: ['cordoned', 'cordoned_failed'] },
  uncordon: { event: 'UNCORDON', from: ['cordoned', 'cordoned_failed'], already: ['ready'] },
} as const satisfies Record<string, { event: NodeEvent; from: NodeState[]; already: NodeState[] }>;

/** The inventory of nodes, and what the operator does with them. */
@Injectable()
export class NodesService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly transactions: Transactions,
    private readonly nodes: NodeSteps,
    private readonly gpus: GpuSteps,
    private readonly reader: NodeReader,
    private readonly pools: PoolCatalogue,
  ) {}

  async register({ gpuaas_id, node_name, gpus }: RegisterNode, context: CallContext): Promise<GpuNode> {
    requirePlatformAdmin(context.caller);
    gpus.forEach(({ board }, at) => {
      if (!boardNamed(board))
        throw invalidField(
          `gpus.${at}.board`,
          'isBoard',
          `must be one of: ${boards.map(({ name }) => name).join(', ')}.`,
        );
    });
    const cause = causeOf(context);
    return this.transactions.once(context, async (manager) => {
      if (!(await manager.existsBy(GpuaasEntity, { gpuaasId: gpuaas_id }))) throw notFound('gpuaas');
      const inserting = this.nodes.insert(manager, { gpuaasId: gpuaas_id, nodeName: node_name }, cause);
      const node = await unique(inserting, 'The GPU service already has a node with this name.');
      const boards = gpus.flatMap(({ board, count }) => new Array<string>(count).fill(board));
      const values = boards.map((board) => ({ nodeId: node.nodeId, uuid: `GPU-${randomUUID()}`, board }));
      await this.gpus.insertAll(
        manager,
        values.map((each) => ({ values: each, cause })),
      );
      return this.view(manager, node.nodeId);
    });
  }

  async list({ gpuaas_id, ...asked }: ListNodes, { caller }: CallContext): Promise<NodePage> {
    requirePlatformAdmin(caller);
    await this.pools.requireGpuaas(gpuaas_id);
    const { page, limit, offset } = pageWindow(asked, 1);
    const [nodes, total] = await this.dataSource.manager.findAndCount(NodeEntity, {
      where: { ...(gpuaas_id !== undefined && { gpuaasId: gpuaas_id }) },
      order: { createdAt: 'ASC', nodeId: 'ASC' },
      take: limit,
      skip: offset,
    });
    return { data: await this.reader.read(nodes), pagination: { page, limit, total } };
  }

  async get({ node_id }: NodePath, { caller }: CallContext): Promise<GpuNode> {
    requirePlatformAdmin(caller);
    return this.view(this.dataSource.manager, node_id);
  }

  /**
   * Repeated it changes nothing. Throws `conflict` where the node is not in a state for it, or a reset would end what
   * runs there.
   */
  async command(name: keyof typeof commands, { node_id }: NodePath, context: CallContext): Promise<GpuNode> {
    requirePlatformAdmin(context.caller);
    const { event, from, already } = commands[name];
    return this.transactions.once(context, async (manager) => {
      const node = await this.nodes.lock(manager, node_id);
      if (!node) throw notFound('node');
      const state = node.state as NodeState;
      if ((already as readonly NodeState[]).includes(state)) return this.view(manager, node_id);
      if (!(from as readonly NodeState[]).includes(state)) {
        throw new AppError(
          'conflict',
          `The node is ${nodeStatusOf(state)}; ${name} needs a node that is ${anyOf(from)}.`,
        );
      }
      if (name === 'reset') await this.requireEmpty(manager, node_id);
      const values = { ...(name === 'reset' && { isReset: true }), ...(name === 'initialise' && { isReset: false }) };
      // Why a node has failed is true of it, cordoned or not.
      const error = name === 'cordon' || name === 'uncordon' ? node.lastError : null;
      await this.nodes.move(manager, node, event, causeOf(context, name), values, error);
      return this.view(manager, node_id);
    });
  }

  /** A reset ends whatever runs on the node. */
  private async requireEmpty(manager: EntityManager, nodeId: string): Promise<void> {
    // Whoever is taking a part of one of its GPUs commits first, and is seen by the next statement.
    await manager.query('SELECT FROM gpu WHERE node_id = $1 ORDER BY gpu_id FOR NO KEY UPDATE', [nodeId]);
    const [{ held = 0 } = {}] = await manager.query<{ held: number }[]>(
      'SELECT count(*)::int AS held FROM lease JOIN gpu USING (gpu_id) WHERE node_id = $1 AND lost_reason IS NULL',
      [nodeId],
    );
    if (held === 0) return;
    const what = held === 1 ? '1 slice of the node is' : `${held} slices of the node are`;
    throw new AppError(
      'conflict',
      `${what} held by subscriptions. Cordon the node, and reset it when they have ended.`,
    );
  }

  private async view(manager: EntityManager, nodeId: string): Promise<GpuNode> {
    const node = await manager.findOneBy(NodeEntity, { nodeId });
    const [view] = node ? await this.reader.read([node], manager) : [];
    if (!view) throw notFound('node');
    return view;
  }
}

/** A node that is cordoned shows no more than that. */
function anyOf(states: readonly NodeState[]): string {
  const told = states.filter((state) => state !== 'cordoned_failed' || !states.includes('cordoned'));
  return told.map((state) => (state === 'cordoned_failed' ? 'cordoned after it failed' : state)).join(' or ');
}
