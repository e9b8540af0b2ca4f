import type { CallContext, Nothing, TeamPath } from '@atoll/contracts';
import {
  teamBatches,
  type AddedMembers,
  type AddMembers,
  type ChangeRole,
  type CreateTeamWithPolicy,
  type FindMembers,
  type FindWorkspaces,
  type FoundMembers,
  type FoundWorkspaces,
  type NamedTeams,
  type OnboardUser,
  type Team,
  type TeamDeletion,
  type TeamMember,
  type TeamsNamedAfter,
  type WelcomedUser,
  type WelcomeUser,
} from '@atoll/contracts/teams';
import { Handle, type Handlers } from '@atoll/rpc';
import { Controller } from '@nestjs/common';
import { OnboardingService } from '../invitations/onboarding.service.js';
import { MembersService } from '../members/member.service.js';
import { TeamCreationService } from '../teams/team-creation.service.js';
import { BatchesService } from './batch.service.js';

@Controller()
export class BatchesController implements Handlers<typeof teamBatches> {
  constructor(
    private readonly batches: BatchesService,
    private readonly creation: TeamCreationService,
    private readonly members: MembersService,
    private readonly onboarding: OnboardingService,
  ) {}

  @Handle(teamBatches.create)
  create(input: CreateTeamWithPolicy, context: CallContext): Promise<Team> {
    return this.creation.create(input, context);
  }

  @Handle(teamBatches.names)
  names(input: TeamsNamedAfter, context: CallContext): Promise<NamedTeams> {
    return this.batches.names(input, context);
  }

  @Handle(teamBatches.findMembers)
  findMembers(input: FindMembers, context: CallContext): Promise<FoundMembers> {
    return this.batches.findMembers(input, context);
  }

  @Handle(teamBatches.addMembers)
  addMembers(input: AddMembers, context: CallContext): Promise<AddedMembers> {
    return this.members.addAll(input, context);
  }

  @Handle(teamBatches.changeRole)
  changeRole(input: ChangeRole, context: CallContext): Promise<TeamMember> {
    return this.members.changeRole(input, context, { keepsOwners: true });
  }

  @Handle(teamBatches.workspaces)
  workspaces(input: FindWorkspaces, context: CallContext): Promise<FoundWorkspaces> {
    return this.batches.workspaces(input, context);
  }

  @Handle(teamBatches.end)
  end(input: TeamPath, context: CallContext): Promise<TeamDeletion> {
    return this.batches.end(input, context);
  }

  @Handle(teamBatches.welcome)
  welcome(input: WelcomeUser, context: CallContext): Promise<WelcomedUser> {
    return this.onboarding.welcome(input, context);
  }

  @Handle(teamBatches.onboard)
  onboard(input: OnboardUser, context: CallContext): Promise<Nothing> {
    return this.onboarding.onboard(input, context);
  }
}
