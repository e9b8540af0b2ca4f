import { baremetalNodeSetAside } from '@atoll/contracts/gpuaas';
import { Outbox } from '@atoll/events';
import {
  DurableMachine,
  StepFailed,
  touchRows,
  type Outcome,
  type Passage,
  type StepContext,
} from '@atoll/state-machine';
import { spreadMs } from '@atoll/waiting';
import { Injectable, Logger } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { GpuaasSettings } from '../../gpuaas-settings.js';
import { allWaitingFor, firstWaitingFor } from './host-matching.js';
import { baremetalInstanceMachine, type BaremetalInstanceMachine } from '../../model/baremetal-instance.machine.js';
import type { BaremetalNodeEntity, MaintenanceCode } from '../../model/baremetal-node.entity.js';
import {
  baremetalNodeMachine,
  type BaremetalNodeEvent,
  type BaremetalNodeState,
} from '../../model/baremetal-node.machine.js';
import { BaremetalSecrets } from '../hosts/baremetal-secrets.js';
import { HostAccess, type Tenant } from '../hosts/host-access.js';
import { crowdedCode, isCrowded, isSuperseded, unlessCrowded, type Inspection } from '../hosts/host-driver.js';
import { Ledger } from '../hosts/ledger.js';
import { createReinstallToken, ReinstallHook } from './reinstall-hook.js';
import { isToBeCleaned, noteReach, otherNodeOf } from './baremetal-node-rows.js';
import { differencesOf, sameFindings, sentenceOf } from './specs-found.js';
import { unreachableCodes } from '../hosts/ssh-hosts.js';

type Found = Outcome<BaremetalNodeEntity, BaremetalNodeEvent>;

const recheckMs = 5 * 60_000;
const awaitCallbackMs = 60_000;
const shortestCleaningMs = 5_000;
const longestCleaningMs = 10 * 60_000;

/**
 * Hosts: checked before they are offered, looked at while they are, and cleaned after a tenant where that failed at
 * first.
 */
@Injectable()
export class BaremetalNodeSteps extends DurableMachine<BaremetalNodeEntity, BaremetalNodeState, BaremetalNodeEvent> {
  protected readonly lanes = `ARRAY['node:' || node_id]`;
  private readonly logger = new Logger('Baremetal');
  private readonly instances: BaremetalInstanceMachine;

  constructor(
    dataSource: DataSource,
    private readonly access: HostAccess,
    private readonly ledger: Ledger,
    private readonly outbox: Outbox,
    private readonly hook: ReinstallHook,
    private readonly secrets: BaremetalSecrets,
    private readonly settings: GpuaasSettings,
  ) {
    super(dataSource, baremetalNodeMachine);
    this.instances = baremetalInstanceMachine(settings.baremetalLimits);
  }

  step(node: BaremetalNodeEntity, context: StepContext): Promise<Found> {
    return unlessCrowded(node, () => this.stepOf(node, context));
  }

  private async stepOf(node: BaremetalNodeEntity, context: StepContext): Promise<Found> {
    switch (node.state as BaremetalNodeState) {
      case 'checking':
        return this.check(node, context);
      case 'check_failed':
        return isWorthAnotherLook(node) ? { event: 'CHECK' } : 'rest';
      case 'available':
      case 'in_service':
        return this.look(node, context);
      case 'reinstalling':
        return this.reinstall(node, context);
      case 'clean_failed':
        return this.clean(node, context);
      default:
        return 'rest';
    }
  }

  protected override async entered(
    manager: EntityManager,
    node: BaremetalNodeEntity,
    { from, event }: Passage<BaremetalNodeState, BaremetalNodeEvent>,
  ): Promise<void> {
    switch (node.state as BaremetalNodeState) {
      case 'check_failed':
        if (isWorthAnotherLook(node)) await this.park(manager, node, recheckMs);
        break;
      case 'available':
        await this.becomeFree(manager, node, event);
        await this.park(manager, node, this.settings.hostHealthMs);
        break;
      case 'in_service':
        await this.park(manager, node, this.settings.hostHealthMs);
        break;
      case 'reinstalling':
        await manager.query(
          'UPDATE baremetal_node SET reinstall_token = $2, reinstall_asked_at = NULL WHERE node_id = $1',
          [node.nodeId, this.secrets.sealReinstallToken(node.nodeId, createReinstallToken(node.nodeId))],
        );
        break;
      case 'clean_failed':
        if (from === 'reinstalling')
          await this.setAside(manager, node.nodeId, 'reinstall', node.lastError?.message ?? 'The reinstall failed.');
        await this.park(manager, node, shortestCleaningMs);
        break;
      default:
    }
  }

  /**
   * Takes no new tenant until the operator says so; `clean_failed`: until the host was cleaned. What is said first
   * stays, but that a reinstall is due goes before all else.
   */
  async setAside(
    manager: EntityManager,
    nodeId: string,
    code: Exclude<MaintenanceCode, 'operator'>,
    reason: string,
  ): Promise<void> {
    const [rows] = await manager.query<[{ name: string }[], number]>(
      `UPDATE baremetal_node SET is_maintenance = true, maintenance_code = $2, maintenance_reason = $3
       WHERE node_id = $1 AND (NOT is_maintenance OR ($2 = 'reinstall' AND maintenance_code IS DISTINCT FROM 'reinstall'))
       RETURNING name`,
      [nodeId, code, reason],
    );
    for (const { name } of rows) {
      await this.outbox.add(manager, baremetalNodeSetAside, { node_id: nodeId, name, code, reason });
      this.logger.warn(`The bare-metal node ${name} is in maintenance (${code}): ${reason}`);
    }
  }

  /** Forgets the last instance and its secrets: the host is clean, was reinstalled, or leaves the inventory. */
  async forgetInstance(manager: EntityManager, { nodeId, instanceId }: BaremetalNodeEntity): Promise<void> {
    await manager.query('UPDATE baremetal_instance SET password = NULL, proof_key = NULL WHERE instance_id = $1', [
      instanceId,
    ]);
    await manager.query('UPDATE baremetal_node SET instance_id = NULL WHERE node_id = $1', [nodeId]);
  }

  /** A request that waits for this node looks again. */
  async offer(manager: EntityManager, nodeId: string): Promise<void> {
    await touchRows(manager, this.instances, await firstWaitingFor(manager, nodeId), ['requested']);
  }

  /** This node is given to nobody any more: requests that it would fit look whether another one ever will. */
  async reconsider(manager: EntityManager, nodeId: string): Promise<void> {
    await touchRows(manager, this.instances, await allWaitingFor(manager, nodeId), ['requested']);
  }

  private async becomeFree(
    manager: EntityManager,
    node: BaremetalNodeEntity,
    event: BaremetalNodeEvent,
  ): Promise<void> {
    const { nodeId } = node;
    if (node.instanceId !== null) await this.forgetInstance(manager, node);
    const isCleaned = event === 'CLEANED' || event === 'PASSED';
    await manager.query(
      `UPDATE baremetal_node SET failures = CASE WHEN $2 THEN 0 ELSE failures END,
         is_maintenance = is_maintenance AND NOT ($3 AND maintenance_code = 'clean_failed'),
         maintenance_code = CASE WHEN $3 AND maintenance_code = 'clean_failed' THEN NULL ELSE maintenance_code END,
         maintenance_reason = CASE WHEN $3 AND maintenance_code = 'clean_failed' THEN NULL ELSE maintenance_reason END
       WHERE node_id = $1`,
      [nodeId, event === 'PASSED', isCleaned],
    );
    await this.offer(manager, nodeId);
  }

  private async check(node: BaremetalNodeEntity, context: StepContext): Promise<Found> {
    const attempt = { instanceId: null, nodeId: node.nodeId, action: 'check', step: 'inspect' } as const;
    const inspection = await this.ledger.record(attempt, () =>
      this.access.driverOf(node).inspect(this.access.hostOf(node), context),
    );
    return { decide: (manager, row) => this.conclude(manager, row, inspection) };
  }

  private async conclude(
    manager: EntityManager,
    node: BaremetalNodeEntity,
    { hostKey, machineId, found, fence: seen }: Inspection,
  ): Promise<void> {
    // What the host has seen may be of another platform, or of a node that was deleted.
    const fence = BigInt(seen) > BigInt(node.fence) ? seen : node.fence;
    const differences = differencesOf(node, found);
    const other = await otherNodeOf(manager, { nodeId: node.nodeId, hostKey, machineId });
    const isAccepted = differences.length === 0 || sameFindings(node.accepted, found);
    const values = {
      hostKey,
      machineId: other === undefined ? machineId : null,
      fence,
      found,
      differences,
      unreachableSince: null,
      unreachableReason: null,
    };
    const cause = { actor: 'system:gpuaas' };
    let error = isAccepted ? null : { code: 'specs_differ', message: sentenceOf(differences) };
    if (other !== undefined)
      error = { code: 'host_registered', message: `This host is registered as ${other}: delete one of the two.` };
    await this.move(manager, node, error === null ? 'PASSED' : 'REFUSED', cause, values, error);
  }

  /** Is the host still there? Its tenant keeps it; the node is not offered meanwhile. */
  private async look(node: BaremetalNodeEntity, context: StepContext): Promise<Found> {
    const [busy] = node.instanceId
      ? await this.query(`SELECT FROM baremetal_instance WHERE instance_id = $1 AND state <> 'active'`, [
          node.instanceId,
        ])
      : [];
    if (busy) return { againAfterMs: spreadMs(this.settings.hostHealthMs) };
    let failed: StepFailed | null = null;
    try {
      await this.patiently(context, (limited) => this.access.driverOf(node).look(this.access.hostOf(node), limited));
    } catch (error) {
      if (!(error instanceof StepFailed) || isCrowded(error)) throw error;
      failed = error;
    }
    const reason = failed && failed.message;
    const againAfterMs = spreadMs(failed ? this.awayPauseMs(node) : this.settings.hostHealthMs);
    // Somebody else may be at that address: also where the known host answers again, the operator has to look.
    const hasOtherKey = failed?.code === 'host_key_changed' && !node.isMaintenance;
    if (!hasOtherKey && reason === node.unreachableReason) return { againAfterMs };
    return {
      decide: async (manager, row) => {
        await noteReach(manager, row.nodeId, reason);
        if (hasOtherKey) await this.setAside(manager, row.nodeId, 'host_key_changed', reason ?? '');
        await this.park(manager, row, againAfterMs);
        if (reason === null) await this.returned(manager, row);
      },
    };
  }

  /** Until the next look at a host that cannot be reached: ever longer, up to the pause before a further check. */
  private awayPauseMs({ unreachableSince }: BaremetalNodeEntity): number {
    const awayMs = unreachableSince === null ? 0 : Date.now() - unreachableSince.getTime();
    return Math.max(this.settings.hostHealthMs, Math.min(recheckMs, awayMs / 2));
  }

  /** Wakes whoever waits for this host: a request, or its tenant if their keys have changed meanwhile. */
  private async returned(manager: EntityManager, { nodeId, instanceId }: BaremetalNodeEntity): Promise<void> {
    if (instanceId !== null) await touchRows(manager, this.instances, [instanceId], ['active']);
    await this.offer(manager, nodeId);
  }

  /** Calls the hook until it has taken the call; then its callback is awaited until the deadline. */
  private async reinstall(node: BaremetalNodeEntity, context: StepContext): Promise<Found> {
    const waiting = {
      againAfterMs: awaitCallbackMs,
      reason: { code: 'reinstalling', message: 'The reinstall hook is at work.' },
    };
    if (node.reinstallAskedAt !== null) return waiting;
    const attempt = { instanceId: null, nodeId: node.nodeId, action: 'reinstall', step: 'call_hook' } as const;
    const token = this.secrets.openReinstallToken(node.nodeId, node.reinstallToken ?? '');
    await this.ledger.record(attempt, () => this.hook.call(node, token, context.signal));
    await this.query(
      'UPDATE baremetal_node SET reinstall_asked_at = clock_timestamp() WHERE node_id = $1 AND claim_token = $2',
      [node.nodeId, node.claimToken],
    );
    return waiting;
  }

  /** After a tenant with root nothing on the host can be believed: such a host waits for a reinstall. */
  private async clean(node: BaremetalNodeEntity, context: StepContext): Promise<Found> {
    if (!isToBeCleaned(node)) return 'rest';
    const [instance] = await this.query<Tenant>(
      'SELECT instance_id AS "instanceId", username, password, proof_key AS "proofKey" FROM baremetal_instance WHERE instance_id = $1',
      [node.instanceId],
    );
    if (!instance?.password) return { event: 'CLEANED' };
    const attempt = { instanceId: instance.instanceId, nodeId: node.nodeId, action: 'clean', step: 'revoke' } as const;
    try {
      const revoke = (fence: string) =>
        this.ledger.record(attempt, () =>
          this.patiently(context, (limited) =>
            this.access
              .driverOf(node)
              .revoke(this.access.hostOf(node), this.access.tenancyOf(instance, node, [], fence), limited),
          ),
        );
      try {
        await revoke(node.fence);
      } catch (error) {
        if (!isSuperseded(error)) throw error;
        await revoke(await this.catchUp(node, context));
      }
      // Installed anew, it shows a key that nothing has pinned; and no check of this release has passed on one without
      // a machine id.
      return { event: node.hostKey === null || node.machineId === null ? 'CHECK' : 'CLEANED' };
    } catch (error) {
      if (!(error instanceof StepFailed) || isCrowded(error)) throw error;
      const ageMs = Date.now() - node.enteredAt.getTime();
      const againAfterMs = Math.min(longestCleaningMs, Math.max(shortestCleaningMs, ageMs / 2));
      return { againAfterMs, reason: { code: error.code, message: error.message } };
    }
  }

  /**
   * Gives a host three quarters of the step, of which it may wait for its connection for one, and takes silence for an
   * answer: a step whose own time is over concludes nothing.
   */
  private async patiently(context: StepContext, work: (limited: StepContext) => Promise<void>): Promise<void> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), (this.settings.hostStepMs * 3) / 4);
    try {
      await work({ signal: AbortSignal.any([context.signal, limit.signal]) });
    } catch (error) {
      if (error instanceof StepFailed || !limit.signal.aborted) throw error;
      throw new StepFailed('host_timeout', 'The host did not answer in time.', false, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * What another node of the same host, or a time that the database has forgotten, has told the host: from now on this
   * goes before it.
   */
  private async catchUp(node: BaremetalNodeEntity, context: StepContext): Promise<string> {
    const seen = await this.access.driverOf(node).seen(this.access.hostOf(node), context);
    const [raised] = await this.query<{ fence: string }>(
      `WITH raised AS (
         UPDATE baremetal_node SET fence = greatest(fence, $3::bigint) + 1 WHERE node_id = $1 AND claim_token = $2 RETURNING fence
       ) SELECT fence FROM raised`,
      [node.nodeId, node.claimToken, seen],
    );
    if (!raised) throw new Error(`The claim on the node ${node.nodeId} is lost.`);
    return raised.fence;
  }
}

/**
 * Codes of checks that failed for what may pass by itself: the host did not answer, or nothing looked at it in time.
 */
const passingCodes: ReadonlySet<string> = new Set([...unreachableCodes, crowdedCode, 'deadline_exceeded', 'timeout']);

function isWorthAnotherLook({ lastError }: BaremetalNodeEntity): boolean {
  return lastError !== null && passingCodes.has(lastError.code);
}
