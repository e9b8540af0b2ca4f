import { StepFailed, type Outcome, type StepContext } from '@atoll/state-machine';
import { backOffMs, type BackOff } from '@atoll/waiting';
import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import type { BaremetalInstanceEntity } from '../model/baremetal-instance.entity.js';
import type { BaremetalInstanceEvent } from '../model/baremetal-instance.machine.js';
import type { BaremetalNodeEntity } from '../model/baremetal-node.entity.js';
import { HostAccess } from './host-access.js';
import { isCrowded } from './host-driver.js';
import { Ledger } from './ledger.js';
import { TeamKeys } from './team-keys.js';

/** Of keys that a host does not take. A host that comes back is told at once. */
const keysBackOff: BackOff = { firstMs: 500, maxMs: 10 * 60_000 };

/** Brings the keys of a team to a host that it has, where they have changed. */
@Injectable()
export class KeyChanges {
  constructor(
    private readonly dataSource: DataSource,
    private readonly access: HostAccess,
    private readonly ledger: Ledger,
    private readonly keys: TeamKeys,
  ) {}

  /** Gives the host the keys that the team has now. Tried again by time while the host cannot be reached. */
  async bring(
    instance: BaremetalInstanceEntity,
    node: BaremetalNodeEntity,
    context: StepContext,
  ): Promise<Outcome<BaremetalInstanceEntity, BaremetalInstanceEvent>> {
    const { instanceId, teamId, placedKeys } = instance;
    const attempts = instance.attempts + 1;
    if ((await this.keys.of(teamId)).join('\n') === placedKeys) return 'rest';
    // Keys are read after the number is taken: who has read older ones has a smaller number, and is refused by the
    // host.
    const fence = await this.nextFence(instance);
    const keys = await this.keys.of(teamId);
    const tenancy = this.access.tenancyOf(instance, node, keys, fence);
    try {
      await this.ledger.record({ instanceId, nodeId: node.nodeId, action: 'keys', step: 'change_keys' }, () =>
        this.access.driverOf(node).changeKeys(this.access.hostOf(node), tenancy, context),
      );
    } catch (error) {
      if (!(error instanceof StepFailed) || isCrowded(error)) throw error;
      const { code, message } = error;
      return { againAfterMs: backOffMs(keysBackOff, attempts), reason: { code, message }, values: { attempts } };
    }
    await this.dataSource.query(
      'UPDATE baremetal_instance SET placed_keys = $2 WHERE instance_id = $1 AND fence = $3',
      [instanceId, keys.join('\n'), fence],
    );
    return 'rest';
  }

  /**
   * A number greater than all before, for something more that is done in `active`. The instance is locked before its
   * node, as by transitions.
   */
  private async nextFence({ instanceId, claimToken }: BaremetalInstanceEntity): Promise<string> {
    const [raised] = await this.dataSource.query<{ fence: string }[]>(
      `WITH instance AS (
         SELECT instance_id, node_id FROM baremetal_instance WHERE instance_id = $1 AND state = 'active' AND claim_token = $2 FOR NO KEY UPDATE
       ), raised AS (
         UPDATE baremetal_node node SET fence = fence + 1 FROM instance WHERE node.node_id = instance.node_id RETURNING instance.instance_id, node.fence
       ), kept AS (
         UPDATE baremetal_instance held SET fence = raised.fence FROM raised WHERE held.instance_id = raised.instance_id RETURNING held.fence
       ) SELECT fence FROM kept`,
      [instanceId, claimToken],
    );
    if (!raised) throw new Error(`The claim on the instance ${instanceId} is lost.`);
    return raised.fence;
  }
}
