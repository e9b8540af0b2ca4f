import { type CallContext, type TeamPath } from '@atoll/contracts';
import {
  teams,
  type CreateTeam,
  type DeleteTeam,
  type ListTeams,
  type ResourceOverview,
  type Team,
  type TeamDeletion,
  type TeamPage,
  type UpdateTeam,
} from '@atoll/contracts/teams';
import { Handle, type Handlers, type Json } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { ForcedDeletionService } from './forced-deletion.service.js';
import { ResourceOverviewService } from './resource-overview.service.js';
import { TeamCreationService } from './team-creation.service.js';
import { TeamDeletionService } from './team-deletion.service.js';
import { TeamsService } from './team.service.js';

@Controller()
export class TeamsController implements Handlers<typeof teams> {
  constructor(
    private readonly teams: TeamsService,
    private readonly creation: TeamCreationService,
    private readonly deletion: TeamDeletionService,
    private readonly forced: ForcedDeletionService,
    private readonly overview: ResourceOverviewService,
  ) {}

  @Handle(teams.create)
  create(input: CreateTeam, context: CallContext): Promise<Team> {
    return this.creation.create(input, context);
  }

  @Handle(teams.list)
  list(input: ListTeams, context: CallContext): Promise<Json<TeamPage>> {
    return this.teams.list(input, context);
  }

  @Handle(teams.get)
  get(input: TeamPath, context: CallContext): Promise<Json<Team>> {
    return this.teams.get(input, context);
  }

  @Handle(teams.update)
  update(input: UpdateTeam, context: CallContext): Promise<Team> {
    return this.teams.update(input, context);
  }

  @Handle(teams.suspend)
  suspend(input: TeamPath, context: CallContext): Promise<Team> {
    return this.teams.setSuspended(input, true, context);
  }

  @Handle(teams.unsuspend)
  unsuspend(input: TeamPath, context: CallContext): Promise<Team> {
    return this.teams.setSuspended(input, false, context);
  }

  @Handle(teams.resourceOverview)
  resourceOverview(input: TeamPath, context: CallContext): Promise<ResourceOverview> {
    return this.overview.get(input, context);
  }

  @Handle(teams.delete)
  delete({ team_id, force }: DeleteTeam, context: CallContext): Promise<TeamDeletion> {
    return (force === 'true' ? this.forced : this.deletion).delete({ team_id }, context);
  }
}
