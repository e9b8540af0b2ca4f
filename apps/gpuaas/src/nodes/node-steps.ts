import {
  DurableMachine,
  StepFailed,
  type Cause,
  type Outcome,
  type Passage,
  type StepContext,
} from '@atoll/state-machine';
import { backOffMs } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { NodeDriver } from '../driver/node-driver.js';
import { GpuSteps, isTaken } from '../sharing/gpu-steps.js';
import type { GpuEvent } from '../model/gpu.machine.js';
import { GpuaasSettings } from '../gpuaas-settings.js';
import type { NodeEntity } from '../model/node.entity.js';
import { nodeMachine, type NodeEvent, type NodeState } from '../model/node.machine.js';

const longestRetryMs = 10 * 60_000;
/** In SQL, as the index `gpu_lost` has it. */
const lostGpu = `state = 'offline' AND pool_id IS NOT NULL`;

/**
 * The statements of a sweep. They read what the indexes `node_failing` and `gpu_lost` hold, and no node that is well.
 */
export const sweeps = {
  forget: `UPDATE node SET failures = 0 WHERE node_id IN (
      SELECT node_id FROM node WHERE failures > 0 AND state IN ('ready', 'cordoned')
        AND NOT EXISTS (SELECT FROM gpu WHERE gpu.node_id = node.node_id AND gpu.state IN ('offline', 'preparing') AND pool_id IS NOT NULL)
      ORDER BY node_id FOR NO KEY UPDATE SKIP LOCKED
    )`,
  find: `SELECT node_id FROM node WHERE state IN ('ready', 'cordoned') AND node_id = ANY (ARRAY(SELECT node_id FROM gpu WHERE ${lostGpu}))`,
};

/** Nodes: brought into service, taken out of it when a GPU of theirs is lost, and tried again by time. */
@Injectable()
export class NodeSteps extends DurableMachine<NodeEntity, NodeState, NodeEvent> {
  protected readonly lanes = 'ARRAY[node_id::text]';
  override readonly urgent = 'has_tenants';

  constructor(
    dataSource: DataSource,
    private readonly driver: NodeDriver,
    private readonly gpus: GpuSteps,
    private readonly settings: GpuaasSettings,
  ) {
    super(dataSource, nodeMachine);
  }

  async step(node: NodeEntity, context: StepContext): Promise<Outcome<NodeEntity, NodeEvent>> {
    switch (node.state as NodeState) {
      case 'initialising':
        return this.initialise(node, context);
      case 'init_failed':
        return { event: 'INITIALISE' };
      case 'ready':
      case 'cordoned':
        return this.lookForLostGpus(node);
      default:
        return 'rest';
    }
  }

  protected override async entered(
    manager: EntityManager,
    node: NodeEntity,
    { from, event, cause }: Passage<NodeState, NodeEvent>,
  ): Promise<void> {
    if (node.state === 'initialising' && from !== 'registered') await this.noteTenants(manager, node);
    if (node.state === 'initialising' && node.isReset) await this.sendGpus(manager, node, 'GO_OFFLINE', cause);
    if (node.state === 'ready' || node.state === 'cordoned') {
      await manager.query(
        `WITH forgotten AS (DELETE FROM node_trouble WHERE node_id = $1 AND $3)
         UPDATE node SET is_reset = false, is_cordoned = $2 WHERE node_id = $1`,
        [node.nodeId, node.state === 'cordoned', from === 'initialising'],
      );
      await this.sendGpus(manager, node, 'PREPARE', cause);
    }
    if (node.state === 'cordoned_failed')
      await manager.query('UPDATE node SET is_cordoned = true WHERE node_id = $1', [node.nodeId]);
    if (node.state === 'init_failed') {
      const failures = event === 'UNCORDON' ? 1 : node.failures + 1;
      await manager.query('UPDATE node SET failures = $2, is_cordoned = is_cordoned AND NOT $3 WHERE node_id = $1', [
        node.nodeId,
        failures,
        event === 'UNCORDON',
      ]);
      await this.park(
        manager,
        node,
        backOffMs({ firstMs: this.settings.initRetryMs, maxMs: longestRetryMs, jitter: 0 }, failures),
      );
    }
  }

  private async initialise(
    { nodeId, nodeName, gpuaasId, isReset, isCordoned }: NodeEntity,
    context: StepContext,
  ): Promise<Outcome<NodeEntity, NodeEvent>> {
    const gpus = await this.query<{ uuid: string }>('SELECT uuid FROM gpu WHERE node_id = $1 ORDER BY gpu_id', [
      nodeId,
    ]);
    const uuids = gpus.map(({ uuid }) => uuid);
    const node = { nodeName, gpuaasId };
    const leases = await this.leasesOn(nodeId);
    await (isReset
      ? this.driver.reset(node, uuids, context.signal)
      : this.driver.initialise(node, uuids, leases, context.signal));
    const found = await this.driver.observeAll(node, uuids, context.signal);
    const missing = uuids.find((uuid) => (found.get(uuid)?.mode ?? null) === null);
    if (missing !== undefined)
      throw new StepFailed('device_missing', `The node reports that it is ready, but lacks ${missing}.`);
    return { event: isCordoned ? 'SUCCEEDED_ASIDE' : 'SUCCEEDED' };
  }

  private async leasesOn(nodeId: string): Promise<string[]> {
    const rows = await this.query<{ lease_id: string }>(
      'SELECT lease_id FROM lease JOIN gpu USING (gpu_id) WHERE node_id = $1',
      [nodeId],
    );
    return rows.map(({ lease_id }) => lease_id);
  }

  /**
   * A GPU that was lost needs its node to be initialised again. Runs after the entry, when a GPU was lost, and after a
   * sweep found one.
   */
  private async lookForLostGpus({ nodeId }: NodeEntity): Promise<Outcome<NodeEntity, NodeEvent>> {
    const [gpu] = await this.query<{ uuid: string; reason: string | null }>(
      `SELECT uuid, last_error->>'message' AS reason FROM gpu WHERE node_id = $1 AND ${lostGpu} LIMIT 1`,
      [nodeId],
    );
    if (!gpu) return 'rest';
    return { event: 'FAULT', reason: { code: 'gpu_lost', message: `${gpu.uuid}: ${gpu.reason ?? 'was lost'}` } };
  }

  /**
   * Nodes in service that have lost a GPU: the transaction that lost it may have found the node's row locked. And where
   * all GPUs of a node are in service again, its failures are forgotten.
   */
  override async sweep(): Promise<string[]> {
    await this.query(sweeps.forget, []);
    return (await this.query<{ node_id: string }>(sweeps.find, [])).map(({ node_id }) => node_id);
  }

  /** Of a node that lost a GPU the others are in use. Nobody comes to it until it is ready again. */
  private async noteTenants(manager: EntityManager, { nodeId }: NodeEntity): Promise<void> {
    await manager.query(
      `UPDATE node SET has_tenants = EXISTS (SELECT FROM gpu WHERE gpu.node_id = $1 AND (${isTaken})) WHERE node_id = $1`,
      [nodeId],
    );
  }

  private async sendGpus(manager: EntityManager, { nodeId }: NodeEntity, event: GpuEvent, cause: Cause): Promise<void> {
    const gpus = await this.gpus.lockWhere(manager, 'node_id = $1', [nodeId]);
    const isReset = { code: 'node_reset', message: 'Its node is being reset.' };
    if (event === 'PREPARE') await this.gpus.beginAll(manager, gpus, event, cause);
    else await this.gpus.moveAll(manager, gpus, event, cause, {}, isReset);
  }
}
