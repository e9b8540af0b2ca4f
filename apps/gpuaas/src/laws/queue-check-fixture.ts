import { expect } from '@jest/globals';
import type { AppError } from '@atoll/errors';
import { maxWaiting } from '../allocation/scheduling.js';
import type { World } from './world-fixture.js';

interface Request {
  waitingId: string;
  poolId: string;
  teamId: string;
  profile: string;
  vgpus: number;
  refusal: string | null;
  /** Of the row that waits. */
  holder: string;
  state: string;
  leases: number;
}

/** Those that wait, and how many leases the rows that wait have: none, or they would not. */
function requestsOf(world: World): Promise<Request[]> {
  return world.look<Request>(
    `SELECT waiting_id AS "waitingId", waiting_request.pool_id AS "poolId", waiting_request.team_id AS "teamId", waiting_request.profile,
       waiting_request.vgpus, refusal, coalesce('workload ' || waiting_request.workload_id, 'subscription ' || waiting_request.subscription_id) AS holder,
       coalesce(workload.state, subscription.state) AS state,
       (SELECT count(*)::int FROM lease WHERE CASE WHEN waiting_request.workload_id IS NULL
          THEN lease.subscription_id = waiting_request.subscription_id AND lease.is_added = waiting_request.is_added
          ELSE lease.workload_id = waiting_request.workload_id END) AS leases
     FROM waiting_request JOIN subscription USING (subscription_id) LEFT JOIN workload ON workload.workload_id = waiting_request.workload_id ORDER BY waiting_id`,
  );
}

/**
 * The queue of each pool, seen from outside after each happening: by this alone, and not by the code that serves it, is
 * it judged.
 */
export class QueueCheck {
  private readonly arrived: (Request & { readonly heldBefore: number })[] = [];

  constructor(private readonly world: World) {}

  /**
   * Who waits is alive and has nothing yet, their number is bounded, and nobody was passed by a later one who asked for
   * the same.
   */
  async check(): Promise<void> {
    const now = await requestsOf(this.world);
    for (const { state, leases } of now)
      expect([['subscribing', 'growing', 'pending'].includes(state), leases]).toEqual([true, 0]);
    for (const ofPool of Map.groupBy(now, ({ poolId }) => poolId).values()) {
      expect(ofPool.length).toBeLessThanOrEqual(maxWaiting.pool);
      for (const ofTeam of Map.groupBy(ofPool, ({ teamId }) => teamId).values())
        expect(ofTeam.length).toBeLessThanOrEqual(maxWaiting.team);
    }
    const held = await this.held();
    const isNew = ({ waitingId }: Request) => !this.arrived.some((known) => known.waitingId === waitingId);
    this.arrived.push(
      ...now.filter(isNew).map((request) => ({ ...request, heldBefore: held.get(request.holder) ?? 0 })),
    );
    const waiting = new Set(now.filter(({ refusal }) => refusal === null).map(({ waitingId }) => waitingId));
    for (const [at, later] of this.arrived.entries()) {
      // A subscription that was to grow holds what it held before, also where that was called off.
      const isServed = (held.get(later.holder) ?? 0) > later.heldBefore;
      if (!isServed || waiting.has(later.waitingId)) continue;
      const passed = this.arrived
        .slice(0, at)
        .filter((earlier) => waiting.has(earlier.waitingId) && isAlike(earlier, later));
      expect([later, passed]).toEqual([later, []]);
    }
  }

  /** Once everything is at rest nothing waits. */
  async checkAtRest(): Promise<void> {
    expect(await requestsOf(this.world)).toEqual([]);
  }

  /**
   * The MPS pools have one GPU each, and room for four tenants, in whatever mode it is: a request for that pool is
   * refused only where those who hold or wait and it are more than four; or where nobody could be placed, since the
   * node or the GPU is out of service. `error`: of a refused request, which has changed nothing.
   */
  async checkRefusal(poolAt: number, vgpus: number, error: AppError): Promise<void> {
    const pool = this.world.pools[poolAt];
    if (
      error.code !== 'insufficient_capacity' ||
      !pool ||
      pool.mechanism !== 'mps' ||
      !error.message.startsWith('Pool ')
    )
      return;
    const [found] = await this.world.look<{ tenants: number; isUsable: boolean }>(
      `SELECT (SELECT count(*)::int FROM lease JOIN gpu USING (gpu_id) WHERE pool_id = $1 AND lost_reason IS NULL)
           + (SELECT coalesce(sum(vgpus), 0)::int FROM waiting_request WHERE pool_id = $1) AS tenants,
         (SELECT bool_and(node.state = 'ready' AND gpu.state <> 'offline') FROM gpu JOIN node USING (node_id) WHERE pool_id = $1) AS "isUsable"`,
      [pool.pool_id],
    );
    const fits = found?.isUsable === true && found.tenants + vgpus <= 4;
    expect([error.message, fits]).toEqual([error.message, false]);
  }

  /** How many leases each has. */
  private async held(): Promise<Map<string, number>> {
    const rows = await this.world.look<{ holder: string; leases: number }>(
      `SELECT coalesce('workload ' || workload_id, 'subscription ' || subscription_id) AS holder, count(*)::int AS leases FROM lease GROUP BY 1`,
    );
    return new Map(rows.map(({ holder, leases }) => [holder, leases]));
  }
}

function isAlike(one: Request, other: Request): boolean {
  return one.poolId === other.poolId && one.profile === other.profile && one.vgpus <= other.vgpus;
}
