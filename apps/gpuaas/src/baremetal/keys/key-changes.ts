import { StepFailed, type Outcome, type StepContext } from '@atoll/state-machine';
import { backOffMs, type BackOff } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { BaremetalInstanceEntity } from '../../model/baremetal-instance.entity.js';
import type { BaremetalInstanceEvent } from '../../model/baremetal-instance.machine.js';
import type { BaremetalNodeEntity } from '../../model/baremetal-node.entity.js';
import { Fences } from '../hosts/fences.js';
import { HostAccess } from '../hosts/host-access.js';
import { isCrowded, isSuperseded } from '../hosts/host-driver.js';
import { Ledger } from '../hosts/ledger.js';
import { TeamKeys } from './team-keys.js';

/** Of keys that a host does not take. A host that comes back is told at once. */
const keysBackOff: BackOff = { firstMs: 500, maxMs: 10 * 60_000 };

/** Brings the keys of a team to a host that it has, where they have changed. */
@Injectable()
export class KeyChanges {
  constructor(
    private readonly dataSource: DataSource,
    private readonly access: HostAccess,
    private readonly fences: Fences,
    private readonly ledger: Ledger,
    private readonly keys: TeamKeys,
  ) {}

  /** Gives the host the keys that the team has now. Tried again by time while the host cannot be reached. */
  async bring(
    instance: BaremetalInstanceEntity,
    node: BaremetalNodeEntity,
    context: StepContext,
  ): Promise<Outcome<BaremetalInstanceEntity, BaremetalInstanceEvent>> {
    const attempts = instance.attempts + 1;
    if ((await this.keys.of(instance.teamId)).join('\n') === instance.placedKeys) return 'rest';
    try {
      await this.change(instance, node, context, await this.fences.next(instance)).catch(async (error: unknown) => {
        if (!isSuperseded(error)) throw error;
        // The claim is held, so what the host has seen is of a time that the database has forgotten.
        const seen = await this.access.driverOf(node).seen(this.access.hostOf(node), context);
        await this.change(instance, node, context, await this.fences.next(instance, seen));
      });
    } catch (error) {
      if (!(error instanceof StepFailed) || isCrowded(error)) throw error;
      const { code, message } = error;
      return { againAfterMs: backOffMs(keysBackOff, attempts), reason: { code, message }, values: { attempts } };
    }
    return 'rest';
  }

  /** Reads the keys after `fence` was taken, and notes them unless a later try has begun. */
  private async change(
    instance: BaremetalInstanceEntity,
    node: BaremetalNodeEntity,
    context: StepContext,
    fence: string,
  ): Promise<void> {
    const { instanceId, teamId } = instance;
    const keys = await this.keys.of(teamId);
    const tenancy = this.access.tenancyOf(instance, node, keys, fence);
    await this.ledger.record({ instanceId, nodeId: node.nodeId, action: 'keys', step: 'change_keys' }, () =>
      this.access.driverOf(node).changeKeys(this.access.hostOf(node), tenancy, context),
    );
    await this.dataSource.query(
      'UPDATE baremetal_instance SET placed_keys = $2 WHERE instance_id = $1 AND fence = $3',
      [instanceId, keys.join('\n'), fence],
    );
  }
}
