import { ReservedStatements } from '@atoll/database';
import { Module } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ApiKeysService } from './api-keys/api-key.service.js';
import { CredentialsController } from './api-keys/credential.controller.js';
import { CredentialsService } from './api-keys/credential.service.js';
import { BatchesController } from './batches/batch.controller.js';
import { BatchesService } from './batches/batch.service.js';
import { ImagePoliciesController } from './image-policies/image-policy.controller.js';
import { ImagePoliciesService } from './image-policies/image-policy.service.js';
import { TeamImagesService } from './image-policies/team-images.service.js';
import { AccountTakeover } from './links/account-takeover.js';
import { InvitationLinks } from './links/invitation-links.js';
import { InvitationsController } from './invitations/invitation.controller.js';
import { InvitationsService } from './invitations/invitation.service.js';
import { OnboardingService } from './invitations/onboarding.service.js';
import { LinkTokens } from './tokens/link-tokens.js';
import { LinksController } from './links/link.controller.js';
import { LinksService } from './links/link.service.js';
import { MailBox } from './mail/mail-box.js';
import { MailSender } from './mail/mail-sender.js';
import { Enrolment } from './members/enrolment.js';
import { MembersController } from './members/member.controller.js';
import { MembersService } from './members/member.service.js';
import { PasskeysController } from './passkeys/passkey.controller.js';
import { PasskeysService } from './passkeys/passkey.service.js';
import { PasswordHashes } from './passwords/password-hashes.service.js';
import { PasswordsController } from './passwords/password.controller.js';
import { PasswordsService } from './passwords/password.service.js';
import { SecondFactorsController } from './second-factors/second-factor.controller.js';
import { SecondFactorsService } from './second-factors/second-factor.service.js';
import { LogInTries } from './tries/log-in-tries.js';
import { TokenBuckets } from './tries/token-buckets.js';
import { SlowedLogIns } from './sessions/slowed-log-ins.js';
import { LogInService } from './log-in/log-in.service.js';
import { SessionAnswers } from './sessions/session-answers.js';
import { SessionUpkeep } from './sessions/session-upkeep.js';
import { SessionsController } from './log-in/session.controller.js';
import { SessionsService } from './sessions/session.service.js';
import { SigningKeys } from './sessions/signing-keys.service.js';
import { SsoMemberships } from './sso/sso-memberships.js';
import { SsoProviderClients } from './sso/sso-providers.js';
import { SsoController } from './sso/sso.controller.js';
import { SsoService } from './sso/sso.service.js';
import { DeletedTeams } from './teams/deleted-teams.js';
import { ForcedDeletionService } from './teams/forced-deletion.service.js';
import { HolderAnswers } from './teams/holder-answers.js';
import { ResourceOverviewService } from './teams/resource-overview.service.js';
import { TeamCapacityService } from './teams/team-capacity.service.js';
import { TeamChanges } from './changes/team-changes.js';
import { TeamCreationService } from './teams/team-creation.service.js';
import { TeamDeletionService } from './teams/team-deletion.service.js';
import { TeamDirectoryController } from './teams/team-directory.controller.js';
import { TeamDirectoryService } from './teams/team-directory.service.js';
import { TeamRemoval } from './teams/team-removal.js';
import { TeamUpkeep } from './teams/team-upkeep.js';
import { TeamsController } from './teams/team.controller.js';
import { TeamsService } from './teams/team.service.js';
import { Administrators } from './users/administrators.service.js';
import { EmptyAccounts } from './users/empty-accounts.js';
import { PepperGuard } from './users/pepper-guard.js';
import { Timezones } from './users/timezones.js';
import { UserRegistry } from './users/user-registry.js';
import { UsersController } from './users/user.controller.js';
import { UsersService } from './users/user.service.js';
import { WorkspaceDeletionService } from './workspaces/workspace-deletion.service.js';
import { WorkspacesController } from './workspaces/workspace.controller.js';
import { WorkspacesService } from './workspaces/workspace.service.js';

/** Teams, members, users, their keys and sessions, workspaces and image policies. */
@Module({
  controllers: [
    BatchesController,
    CredentialsController,
    ImagePoliciesController,
    InvitationsController,
    LinksController,
    MembersController,
    PasskeysController,
    PasswordsController,
    SecondFactorsController,
    SessionsController,
    SsoController,
    TeamDirectoryController,
    TeamsController,
    UsersController,
    WorkspacesController,
  ],
  providers: [
    AccountTakeover,
    Administrators,
    ApiKeysService,
    BatchesService,
    DeletedTeams,
    EmptyAccounts,
    CredentialsService,
    Enrolment,
    ForcedDeletionService,
    HolderAnswers,
    ImagePoliciesService,
    InvitationLinks,
    InvitationsService,
    OnboardingService,
    LinkTokens,
    LinksService,
    LogInService,
    LogInTries,
    SlowedLogIns,
    MailBox,
    MailSender,
    MembersService,
    PasskeysService,
    PasswordHashes,
    SecondFactorsService,
    PasswordsService,
    PepperGuard,
    SessionAnswers,
    SessionUpkeep,
    SessionsService,
    SigningKeys,
    SsoMemberships,
    SsoProviderClients,
    SsoService,
    TeamCapacityService,
    TeamChanges,
    TeamCreationService,
    TeamDeletionService,
    TeamDirectoryService,
    TeamImagesService,
    ResourceOverviewService,
    TeamRemoval,
    TeamUpkeep,
    TeamsService,
    Timezones,
    TokenBuckets,
    UserRegistry,
    UsersService,
    WorkspaceDeletionService,
    WorkspacesService,
    {
      provide: ReservedStatements,
      inject: [DataSource],
      useFactory: (dataSource: DataSource) =>
        new ReservedStatements(dataSource, { purpose: 'credentials', poolSize: 4 }),
    },
  ],
})
export class TeamsModule {}
