import type { CallContext, HoldingTeam, RegionalPodHoldings, TeamPodHoldings } from '@atoll/contracts';
import { Statements } from '@atoll/database';
import { AppError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';

/** What a team holds now beside GPUs. */
@Injectable()
export class HoldingsService {
  constructor(private readonly statements: Statements) {}

  async ofTeam({ team_id }: HoldingTeam, { caller }: CallContext): Promise<TeamPodHoldings> {
    if (caller.kind !== 'system') throw new AppError('forbidden', 'Only a service may call this operation.');
    const regions = await this.statements.query<RegionalPodHoldings>(
      'holdings.pods',
      `SELECT region_id, max(region_name) AS region_name, count(*)::int AS pods,
         (count(*) FILTER (WHERE state NOT IN ('stopped', 'failed')))::int AS pods_in_use
       FROM pod WHERE team_id = $1 AND state <> 'deleted' GROUP BY region_id ORDER BY region_id`,
      [team_id],
    );
    return { as_of: new Date().toISOString(), regions };
  }
}
