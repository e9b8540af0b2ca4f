import { teamDirectory, type CallContext, type FindTeam, type TeamChanged, type TeamsAfter, type TeamsSnapshot } from '@atoll/contracts';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { TeamDirectoryService } from './team-directory.service.js';

@Controller()
export class TeamDirectoryController implements Handlers<typeof teamDirectory> {
  constructor(private readonly directory: TeamDirectoryService) {}

  @Handle(teamDirectory.snapshot)
  snapshot(input: TeamsAfter, context: CallContext): Promise<TeamsSnapshot> {
    return this.directory.snapshot(input, context);
  }

  @Handle(teamDirectory.find)
  find(input: FindTeam, context: CallContext): Promise<TeamChanged> {
    return this.directory.find(input, context);
  }
}
