import { teamsThatAllow, type CallContext } from '@atoll/contracts';
import { type ExposedServiceList, type FindExposed } from '@atoll/contracts/pods';
import { Statements } from '@atoll/database';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { ExposureSteps } from '../doors/exposure-steps.js';
import { exposureView } from './exposure-view.js';

/**
 * Of the team `$1` and the subscription `$2`, where those are not null, and of the teams `$3` where that is not null.
 */
const exposedQuery = `SELECT exposure.*, pod.pod_name FROM exposure JOIN pod USING (pod_id)
  WHERE ($1::uuid IS NULL OR pod.team_id = $1) AND ($2::bigint IS NULL OR pod.subscription_id = $2)
    AND ($3::uuid[] IS NULL OR pod.team_id = ANY ($3)) AND exposure.state <> 'deleted'
  ORDER BY exposure.created_at, exposure.service_id`;

/** The exposed services of a team or of a subscription, in one statement. */
@Injectable()
export class ExposuresOfTeam {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
    private readonly steps: ExposureSteps,
  ) {}

  async list({ team_id, subscription_id }: FindExposed, { caller }: CallContext): Promise<ExposedServiceList> {
    if (team_id === undefined && subscription_id === undefined) return { data: [] };
    if (team_id !== undefined) await this.teams.teamFor(caller, team_id, 'readTeam');
    const values = [team_id ?? null, subscription_id ?? null, teamsThatAllow(caller, 'readTeam')];
    const rows = await this.statements.query<{ pod_name: string }>(exposedQuery, values);
    return { data: rows.map((raw) => exposureView(this.steps.rowOf(raw), raw.pod_name)) };
  }
}
