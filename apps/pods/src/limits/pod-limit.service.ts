import { requirePermission, requirePlatformAdmin, type CallContext, type TeamPath } from '@atoll/contracts';
import { type PodLimits, type SetTeamPodLimits, type TeamPodLimits } from '@atoll/contracts/pods';
import { Statements, Transactions } from '@atoll/database';
import { TeamDirectory, TeamGate } from '@atoll/team-directory';
import { Injectable } from '@nestjs/common';
import { noLimits, requireConsistent, together } from './bounds.js';

const ofOperator = 'all';

/** How long pods may run and idle, by the operator for all teams, and by each team for itself. */
@Injectable()
export class PodLimitsService {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly teams: TeamDirectory,
    private readonly gate: TeamGate,
  ) {}

  async get({ caller }: CallContext): Promise<PodLimits> {
    requirePlatformAdmin(caller);
    return (await this.read()).operator;
  }

  async set(asked: PodLimits, { caller }: CallContext): Promise<PodLimits> {
    const limits = limitsOf(asked);
    requireConsistent(limits);
    requirePlatformAdmin(caller);
    await this.keep(ofOperator, limits);
    return limits;
  }

  async ofTeam({ team_id }: TeamPath, { caller }: CallContext): Promise<TeamPodLimits> {
    await this.teams.teamFor(caller, team_id, 'manageTeam');
    const { operator, team } = await this.read(team_id);
    return { ...team, team_id, effective: together(operator, team) };
  }

  async setOfTeam({ team_id, ...asked }: SetTeamPodLimits, { caller }: CallContext): Promise<TeamPodLimits> {
    const limits = limitsOf(asked);
    requireConsistent(limits);
    requirePermission(caller, team_id, 'manageTeam');
    await this.gate.requireGrowth(caller, team_id);
    const { operator } = await this.read();
    requireConsistent(limits, operator);
    await this.keep(team_id, limits);
    return { ...limits, team_id, effective: together(operator, limits) };
  }

  /** What holds for pods of the team. */
  async effective(teamId: string): Promise<PodLimits> {
    const { operator, team } = await this.read(teamId);
    return together(operator, team);
  }

  private async read(teamId = ''): Promise<{ operator: PodLimits; team: PodLimits }> {
    const rows = await this.statements.query<{ scope: string; limits: PodLimits }>(
      'SELECT scope, limits FROM pod_limit WHERE scope IN ($1, $2)',
      [ofOperator, teamId],
    );
    const of = (scope: string) => rows.find((row) => row.scope === scope)?.limits ?? noLimits;
    return { operator: of(ofOperator), team: of(teamId) };
  }

  private async keep(scope: string, limits: PodLimits): Promise<void> {
    await this.transactions.run((manager) =>
      manager.query(
        'INSERT INTO pod_limit (scope, limits) VALUES ($1, $2) ON CONFLICT (scope) DO UPDATE SET limits = excluded.limits',
        [scope, JSON.stringify(limits)],
      ),
    );
  }
}

function limitsOf({
  default_duration_minutes,
  longest_duration_minutes,
  default_idle_stop,
  longest_idle_minutes,
}: PodLimits): PodLimits {
  return { default_duration_minutes, longest_duration_minutes, default_idle_stop, longest_idle_minutes };
}
