import { requirePermission, type CallContext, type ExposedServiceList, type TeamPath } from '@atoll/contracts';
import { Statements } from '@atoll/database';
import { TeamDirectory } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { ExposureSteps } from './exposure-steps.js';
import { exposureView } from './exposure-view.js';

/** The exposed services of a team, in one statement. */
@Injectable()
export class ExposuresOfTeam {
  constructor(
    private readonly statements: Statements,
    private readonly teams: TeamDirectory,
    private readonly steps: ExposureSteps,
  ) {}

  async list({ team_id }: TeamPath, { caller }: CallContext): Promise<ExposedServiceList> {
    requirePermission(caller, team_id, 'readTeam');
    await this.teams.team(team_id);
    const rows = await this.statements.query<{ pod_name: string }>(
      'exposures.of_team',
      `SELECT exposure.*, pod.pod_name FROM exposure JOIN pod USING (pod_id) WHERE pod.team_id = $1 AND exposure.state <> 'deleted'
       ORDER BY exposure.created_at, exposure.service_id`,
      [team_id],
    );
    return { data: rows.map((raw) => exposureView(this.steps.rowOf(raw), raw.pod_name)) };
  }
}
