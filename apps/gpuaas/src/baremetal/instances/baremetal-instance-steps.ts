import { gpuUsageTold } from '@atoll/contracts/billing';
import type { BaremetalError } from '@atoll/contracts/gpuaas';
import { DurableMachine, type Cause, type Outcome, type Passage, type StepContext } from '@atoll/state-machine';
import { UsageTeller } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { TeamCapacity } from '../../capacity/team-capacity.js';
import { GpuaasSettings } from '../../gpuaas-settings.js';
import { pickNode, servableRequests, waitingReason } from '../nodes/host-matching.js';
import type { BaremetalInstanceEntity } from '../../model/baremetal-instance.entity.js';
import {
  baremetalInstanceMachine,
  type BaremetalInstanceEvent,
  type BaremetalInstanceState,
} from '../../model/baremetal-instance.machine.js';
import type { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';
import type { BaremetalNodeEvent } from '../../model/baremetal-node.machine.js';
import { BaremetalNodeSteps } from '../nodes/baremetal-node-steps.js';
import { BaremetalInstanceEvents } from './baremetal-instance-events.js';
import { usageOf } from './baremetal-usage.js';
import { Fences } from '../hosts/fences.js';
import { HostAccess, keyRequired } from '../hosts/host-access.js';
import { unlessCrowded, type HostDriver } from '../hosts/host-driver.js';
import type { AttemptAction } from '../hosts/attempt.entity.js';
import { KeyChanges } from '../keys/key-changes.js';
import { Ledger } from '../hosts/ledger.js';
import { noteReach } from '../nodes/baremetal-node-rows.js';
import { TeamKeys } from '../keys/team-keys.js';

type Found = Outcome<BaremetalInstanceEntity, BaremetalInstanceEvent>;
type InstancePassage = Passage<BaremetalInstanceState, BaremetalInstanceEvent>;
type HostOperation = Exclude<keyof HostDriver, 'inspect' | 'look' | 'reach' | 'seen'>;

/** Requests wait for a node that becomes free, which touches them; this is the safety net. */
const lookAgainMs = 5 * 60_000;
const heldByUnknown =
  'The host holds a tenant that the database does not know, as after a restore. Check the node: the check names the user.';

/** The action on the host in a state, its name in the ledger, and the event after success. */
const hostSteps: Partial<
  Record<
    BaremetalInstanceState,
    { action: AttemptAction; step: string; operation: HostOperation; event: BaremetalInstanceEvent }
  >
> = {
  creating_user: { action: 'provision', step: 'create_user', operation: 'createUser', event: 'DONE' },
  placing_keys: { action: 'provision', step: 'place_keys', operation: 'placeKeys', event: 'DONE' },
  setting_password: { action: 'provision', step: 'set_password', operation: 'setPassword', event: 'DONE' },
  verifying: { action: 'provision', step: 'verify', operation: 'verify', event: 'DONE' },
  rolling_back: { action: 'rollback', step: 'revoke', operation: 'revoke', event: 'UNDONE' },
  cancelling: { action: 'rollback', step: 'revoke', operation: 'revoke', event: 'UNDONE' },
  releasing: { action: 'release', step: 'revoke', operation: 'revoke', event: 'UNDONE' },
};

/** What went wrong is shown by the step in which it did. */
const stepNames: Partial<Record<BaremetalInstanceState, string>> = {
  requested: 'allocate',
  reaching: 'reach',
  ...Object.fromEntries(Object.entries(hostSteps).map(([state, { step }]) => [state, step])),
};

/** Requests for hosts: given a node, provisioned step by step, undone where that fails, and released. */
@Injectable()
export class BaremetalInstanceSteps extends DurableMachine<
  BaremetalInstanceEntity,
  BaremetalInstanceState,
  BaremetalInstanceEvent
> {
  protected readonly lanes = `ARRAY[coalesce('node:' || node_id, 'requests:' || team_id)]`;

  constructor(
    dataSource: DataSource,
    private readonly nodes: BaremetalNodeSteps,
    private readonly access: HostAccess,
    private readonly fences: Fences,
    private readonly ledger: Ledger,
    private readonly keys: TeamKeys,
    private readonly keyChanges: KeyChanges,
    private readonly usage: UsageTeller,
    private readonly events: BaremetalInstanceEvents,
    private readonly capacity: TeamCapacity,
    private readonly settings: GpuaasSettings,
  ) {
    super(dataSource, baremetalInstanceMachine(settings.baremetalLimits));
  }

  step(instance: BaremetalInstanceEntity, context: StepContext): Promise<Found> {
    return unlessCrowded(instance, () => this.stepOf(instance, context));
  }

  private async stepOf(instance: BaremetalInstanceEntity, context: StepContext): Promise<Found> {
    const state = instance.state as BaremetalInstanceState;
    if (state === 'requested') return { decide: (manager, row) => this.allocate(manager, row, instance.dueAt) };
    const node = await this.nodeOf(instance);
    if (state === 'active') return this.keyChanges.bring(instance, node, context);
    const { instanceId } = instance;
    const { nodeId } = node;
    if (state === 'reaching') {
      const attempt = { instanceId, nodeId, action: 'provision', step: 'reach' } as const;
      await this.ledger.record(attempt, () => this.access.driverOf(node).reach(this.access.hostOf(node), context));
      return { event: 'DONE' };
    }
    const rule = hostSteps[state];
    if (!rule) return 'rest';
    const { action, step, operation, event } = rule;
    const fence = await this.fences.next(instance);
    const keys = operation === 'verify' ? await this.keys.of(instance.teamId) : [];
    const tenancy = this.access.tenancyOf(instance, node, keys, fence);
    const driver = this.access.driverOf(node);
    if (operation === 'verify') await this.notePlaced(instance, keys);
    await this.ledger.record({ instanceId, nodeId, action, step }, () =>
      driver[operation](this.access.hostOf(node), tenancy, context),
    );
    return { event, ...(instance.error && { reason: { code: instance.error.code, message: instance.error.message } }) };
  }

  /**
   * Requests that a free node fits, and hosts with other keys than their teams have, although nothing has told them.
   */
  override async sweep(): Promise<string[]> {
    const servable = await this.query<{ instance_id: string }>(servableRequests, []);
    return [...servable.map(({ instance_id }) => instance_id), ...(await this.keys.staleInstances())];
  }

  protected override async entered(
    manager: EntityManager,
    instance: BaremetalInstanceEntity,
    passage: InstancePassage,
  ): Promise<void> {
    const { from, event, cause } = passage;
    const { instanceId, nodeId } = instance;
    const state = instance.state as BaremetalInstanceState;
    if (nodeId !== null) await this.ledger.interrupt(manager, instanceId, nodeId);
    await this.events.changed(manager, instance);
    await this.noteError(manager, instance, passage);
    const isFinal = this.definition.states.get(state)?.isFinal === true;
    if (nodeId === null) {
      if (isFinal) await this.end(manager, instance);
      return;
    }
    const node = await this.lockNode(manager, nodeId);
    if (event === 'FAILED') await this.noteFailure(manager, node, instance, from);
    if (state === 'active') await this.begin(manager, instance, node);
    if (state === 'releasing') {
      await this.usage.tell(manager, gpuUsageTold, usageOf(instance, node, 0));
      await this.nodes.move(manager, node, 'RELEASE', cause);
    }
    if (isFinal) await this.returnNode(manager, instance, node, passage);
    else if (state !== 'active') await this.fences.raise(manager, instance);
    if (state === 'reaching' || isFinal) await this.capacity.note(manager, [instance.teamId]);
  }

  /** The first free node that fits, or the reason why it waits. */
  private async allocate(
    manager: EntityManager,
    instance: BaremetalInstanceEntity,
    claimedDueAt: Date | null,
  ): Promise<void> {
    const { instanceId } = instance;
    const cause: Cause = { actor: 'system:gpuaas' };
    const { node, next } = await this.pickUsable(manager, instanceId);
    if (node) {
      await manager.query('UPDATE baremetal_instance SET node_id = $2, waiting_reason = NULL WHERE instance_id = $1', [
        instanceId,
        node.nodeId,
      ]);
      await this.nodes.move(manager, node, 'ASSIGN', cause, { instanceId });
      await this.move(manager, instance, 'ALLOCATED', cause);
      return this.touch(manager, next, ['requested']);
    }
    const reason = next.length > 0 ? 'An earlier request goes first.' : await waitingReason(manager, instance);
    if (reason === undefined) {
      const error = { code: 'spec_mismatch', message: 'No node of the platform can meet this request any longer.' };
      await this.move(manager, instance, 'MISMATCHED', cause, {}, error);
      return;
    }
    await manager.query('UPDATE baremetal_instance SET waiting_reason = $2 WHERE instance_id = $1', [
      instanceId,
      reason,
    ]);
    await this.touch(manager, next, ['requested']);
    // Touched meanwhile: it is still due.
    if (claimedDueAt?.getTime() === instance.dueAt?.getTime())
      await this.park(manager, instance, next.length > 0 ? 1_000 : lookAgainMs);
  }

  /** As `pickNode`. A node that Atoll does not log in to is not offered from now on. */
  private async pickUsable(
    manager: EntityManager,
    instanceId: string,
  ): Promise<{ node?: BaremetalNodeEntity; next: string[] }> {
    const { nodeId, next } = await pickNode(manager, instanceId);
    if (nodeId === undefined) return { next };
    const node = await this.lockNode(manager, nodeId);
    if (!this.access.lacksKey(node)) return { node, next };
    await noteReach(manager, nodeId, keyRequired);
    return this.pickUsable(manager, instanceId);
  }

  private async begin(
    manager: EntityManager,
    instance: BaremetalInstanceEntity,
    node: BaremetalNodeEntity,
  ): Promise<void> {
    await manager.query(
      'UPDATE baremetal_instance SET active_since = entered_at, error = NULL WHERE instance_id = $1',
      [instance.instanceId],
    );
    await manager.query('UPDATE baremetal_node SET failures = 0 WHERE node_id = $1', [node.nodeId]);
    await this.usage.tell(manager, gpuUsageTold, usageOf(instance, node, 1));
  }

  /** The node is free again, is cleaned in the background, or is installed anew. */
  private async returnNode(
    manager: EntityManager,
    instance: BaremetalInstanceEntity,
    node: BaremetalNodeEntity,
    { from, event, cause }: InstancePassage,
  ): Promise<void> {
    await this.end(manager, instance);
    const wasChanged = from !== 'reaching';
    let to: BaremetalNodeEvent = 'RETURN';
    let error: { code: string; message: string } | null = null;
    if (wasChanged && node.tenantSudo) {
      to = node.reinstallUrl === null ? 'SPOIL' : 'REINSTALL';
      error = to === 'SPOIL' ? await this.requireReinstall(manager, node) : instance.lastError;
    } else if (event === 'SPOILED') {
      to = 'SPOIL';
      error = instance.lastError;
      const reason = instance.lastError?.message ?? 'There was no response in time.';
      await this.nodes.setAside(
        manager,
        node.nodeId,
        'clean_failed',
        `What the last tenant left could not be undone: ${reason}`,
      );
    }
    if (event === 'UNDONE') {
      await manager.query('UPDATE baremetal_instance SET password = NULL, proof_key = NULL WHERE instance_id = $1', [
        instance.instanceId,
      ]);
    }
    await this.nodes.move(manager, await this.lockNode(manager, node.nodeId), to, cause, {}, error);
  }

  /** A tenant had root, and there is no hook. The error of the node stays, although its maintenance may be ended. */
  private async requireReinstall(manager: EntityManager, { nodeId }: BaremetalNodeEntity) {
    const message =
      'The last tenant had root. Reinstall the host and set its new host_key, or null, then check it and end its maintenance.';
    await this.nodes.setAside(manager, nodeId, 'reinstall', message);
    return { code: 'reinstall_required', message };
  }

  private async end(manager: EntityManager, { instanceId, nodeId }: BaremetalInstanceEntity): Promise<void> {
    await manager.query(
      `UPDATE baremetal_instance SET ended_at = entered_at, waiting_reason = NULL, placed_keys = ''${nodeId === null ? ', password = NULL, proof_key = NULL' : ''}
       WHERE instance_id = $1`,
      [instanceId],
    );
  }

  private async noteError(
    manager: EntityManager,
    { instanceId, lastError, enteredAt, waitingReason: waited }: BaremetalInstanceEntity,
    { from, event }: InstancePassage,
  ): Promise<void> {
    if (event !== 'FAILED' && event !== 'EXPIRED' && event !== 'MISMATCHED') return;
    const expired = { code: 'no_capacity', message: `No node became free in time. ${waited ?? ''}`.trim() };
    const { code, message } =
      event === 'EXPIRED' ? expired : (lastError ?? { code: 'internal', message: 'An internal error.' });
    const error: BaremetalError = { code, message, step: stepNames[from] ?? from, at: enteredAt.toISOString() };
    await manager.query('UPDATE baremetal_instance SET error = $2 WHERE instance_id = $1', [
      instanceId,
      JSON.stringify(error),
    ]);
  }

  /**
   * After some failures in a row a node gets no further tenant; after a changed host key, and while the host holds
   * another tenant, at once. In `verifying`, which places the keys of the team at its end, the tenant can make a step
   * fail, with its keys or from within, so there one team counts once in a row: a team alone takes no host from the
   * others.
   */
  private async noteFailure(
    manager: EntityManager,
    node: BaremetalNodeEntity,
    { lastError, teamId }: BaremetalInstanceEntity,
    from: BaremetalInstanceState,
  ): Promise<void> {
    const { nodeId } = node;
    const isAgain = node.failures > 0 && node.failedTeamId === teamId && from === 'verifying';
    const failures = isAgain ? node.failures : node.failures + 1;
    await manager.query('UPDATE baremetal_node SET failures = $2, failed_team_id = $3 WHERE node_id = $1', [
      nodeId,
      failures,
      teamId,
    ]);
    if (lastError?.code === 'host_key_changed')
      await this.nodes.setAside(manager, nodeId, 'host_key_changed', lastError.message);
    else if (lastError?.code === 'host_in_use') await this.nodes.setAside(manager, nodeId, 'failures', heldByUnknown);
    else if (!isAgain && failures >= this.settings.hostFailures) {
      const reason =
        `${failures} instances in a row could not be provisioned here. The last: ${lastError?.message ?? ''}`.trim();
      await this.nodes.setAside(manager, nodeId, 'failures', reason);
    }
  }

  private async notePlaced(
    { instanceId, claimToken }: BaremetalInstanceEntity,
    keys: readonly string[],
  ): Promise<void> {
    await this.query('UPDATE baremetal_instance SET placed_keys = $2 WHERE instance_id = $1 AND claim_token = $3', [
      instanceId,
      keys.join('\n'),
      claimToken,
    ]);
  }

  private async lockNode(manager: EntityManager, nodeId: string): Promise<BaremetalNodeEntity> {
    const node = await this.nodes.lock(manager, nodeId);
    if (!node) throw new Error(`The node ${nodeId} is gone.`);
    return node;
  }

  private async nodeOf({ nodeId }: BaremetalInstanceEntity): Promise<BaremetalNodeEntity> {
    const node = nodeId === null ? undefined : await this.nodes.find(nodeId);
    if (!node) throw new Error(`The node ${nodeId} is gone.`);
    return node;
  }
}
