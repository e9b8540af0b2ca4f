import { type CallContext } from '@atoll/contracts';
import {
  teamDirectory,
  type HeldCredentials,
  type LiveCredentials,
  type LookUpRoles,
  type LookUpTeams,
  type RolesInTeams,
  type TeamsAfter,
  type TeamUpdates,
} from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { TeamDirectoryService } from './team-directory.service.js';

@Controller()
export class TeamDirectoryController implements Handlers<typeof teamDirectory> {
  constructor(private readonly directory: TeamDirectoryService) {}

  @Handle(teamDirectory.page)
  page(input: TeamsAfter, context: CallContext): Promise<TeamUpdates> {
    return this.directory.page(input, context);
  }

  @Handle(teamDirectory.lookUp)
  lookUp(input: LookUpTeams, context: CallContext): Promise<TeamUpdates> {
    return this.directory.lookUp(input, context);
  }

  @Handle(teamDirectory.roles)
  roles(input: LookUpRoles, context: CallContext): Promise<RolesInTeams> {
    return this.directory.roles(input, context);
  }

  @Handle(teamDirectory.liveCredentials)
  liveCredentials(input: HeldCredentials, context: CallContext): Promise<LiveCredentials> {
    return this.directory.liveCredentials(input, context);
  }
}
