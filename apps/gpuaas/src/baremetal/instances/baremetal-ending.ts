import type { Cause } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { BaremetalInstanceSteps } from './baremetal-instance-steps.js';

/** Instances of one transaction; a team with more is asked about again. */
const batch = 100;

/** Ends what a team has of bare metal, as its owner would. */
@Injectable()
export class BaremetalEnding {
  constructor(private readonly instances: BaremetalInstanceSteps) {}

  /** Begins to end up to 100 instances that nobody has begun to end. May be repeated. */
  async endSome(manager: EntityManager, teamId: string, requestId: string | null): Promise<void> {
    const cause: Cause = { actor: 'system:teams', requestId, reason: 'The team is being deleted with what it holds.' };
    for (const [event, states] of [
      ['RELEASE', ['active']],
      ['CANCEL', ['requested', 'reaching', 'creating_user', 'placing_keys', 'setting_password', 'verifying']],
    ] as const) {
      const condition = 'team_id = $1 AND state = ANY ($2)';
      const held = await this.instances.lockWhere(manager, condition, [teamId, states], batch);
      await this.instances.moveAll(manager, held, event, cause);
    }
  }
}
