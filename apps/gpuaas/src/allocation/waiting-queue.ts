import { Statements, Transactions } from '@atoll/database';
import { StepFailed } from '@atoll/state-machine';
import { Injectable } from '@nestjs/common';
import { TeamCapacity } from '../capacity/team-capacity.js';
import { PoolCatalogue } from '../sharing/pool-catalogue.js';
import { Allocation } from './allocation.js';
import { waitsForGpu, type StillWaiting } from './readiness.js';
import { requestOf, type RequestKey } from '../sharing/waiting-requests.js';

const lookAgainMs = 1_000;

/** Serves those that wait for leases: by the steps of their own rows. */
@Injectable()
export class WaitingQueue {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly pools: PoolCatalogue,
    private readonly allocation: Allocation,
    private readonly capacity: TeamCapacity,
  ) {}

  /**
   * For the step of a subscription or a workload that waits for leases: `other lanes` where it has some now. The first
   * of a queue looks for room for all of it, so that a queue costs one look, however long it is. Throws `StepFailed`
   * where there will be no room for it.
   */
  async poll(of: RequestKey, id: string): Promise<StillWaiting | 'other lanes'> {
    const request = await requestOf(this.statements, of, id);
    if (!request) return 'other lanes';
    if (request.refusal !== null) throw new StepFailed('insufficient_capacity', request.refusal, true);
    if (!request.isFirst) return { againAfterMs: lookAgainMs, reason: waitsForGpu };
    const pool = await this.pools.pool(request.poolId);
    await this.transactions.run(async (manager) => {
      const teamIds = await this.allocation.serveQueue(manager, pool, {
        actor: 'system:gpuaas',
        reason: 'served in order of arrival',
      });
      if (teamIds.size > 0) await this.capacity.note(manager, [...teamIds]);
    });
    const left = await requestOf(this.statements, of, id);
    return left ? { againAfterMs: left.refusal === null ? lookAgainMs : 0, reason: waitsForGpu } : 'other lanes';
  }
}
