import { Statements } from '@atoll/database';
import { StepFailed } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { BaremetalInstanceEntity } from '../../model/baremetal-instance.entity.js';

/**
 * The greatest number of a host that is taken over for an instance. A tenant with root can write any number there, and
 * the numbers of users follow it (`createUserScript`).
 */
const greatestSeen = 100_000_000;

/** Numbers for what is done to hosts for instances, each greater than all before it on the node (ADR 33). */
@Injectable()
export class Fences {
  constructor(private readonly statements: Statements) {}

  /**
   * The number of one try. It is taken under the claim of the try, and before anything is read that the try brings to
   * the host: whoever has read something older has a smaller number, which the host refuses. `seen`: what the host has
   * seen, where it refuses the numbers of the database, such as after a restore, up to 100,000,000. Throws `StepFailed`
   * where the claim is lost. Locks the instance before its node, as transitions do.
   */
  async next({ instanceId, claimToken }: BaremetalInstanceEntity, seen = '0'): Promise<string> {
    const [raised] = await this.statements.query<{ fence: string }>(
      `WITH instance AS (
         SELECT instance_id, node_id FROM baremetal_instance WHERE instance_id = $1 AND claim_token = $2 FOR NO KEY UPDATE
       ), raised AS (
         UPDATE baremetal_node node SET fence = greatest(fence, least($3::bigint, ${greatestSeen})) + 1 FROM instance WHERE node.node_id = instance.node_id RETURNING instance.instance_id, node.fence
       ), kept AS (
         UPDATE baremetal_instance held SET fence = raised.fence FROM raised WHERE held.instance_id = raised.instance_id RETURNING held.fence
       ) SELECT fence FROM kept`,
      [instanceId, claimToken, seen],
    );
    if (!raised)
      throw new StepFailed('claim_lost', `Another worker has the instance ${instanceId}, or it has moved on.`);
    return raised.fence;
  }

  /**
   * For a transition. Workers of the previous release take the number of a try from the instance, so the transition has
   * to raise it as long as they may run beside this release; a later release may drop this.
   */
  async raise(manager: EntityManager, { instanceId, nodeId }: BaremetalInstanceEntity): Promise<void> {
    await manager.query(
      `WITH raised AS (UPDATE baremetal_node SET fence = fence + 1 WHERE node_id = $2 RETURNING fence)
       UPDATE baremetal_instance SET fence = raised.fence FROM raised WHERE instance_id = $1`,
      [instanceId, nodeId],
    );
  }
}
