import { eventEntities } from '@atoll/events';
import { ApiKeyEntity } from '../api-keys/api-key.entity.js';
import { ImageObjectEntity, ImagePolicyEntity } from '../image-policies/image-policy.entity.js';
import { OneTimeLinkEntity } from '../links/one-time-link.entity.js';
import { MailEntity } from '../mail/mail.entity.js';
import { MembershipEntity } from '../members/membership.entity.js';
import { PasswordEntity } from '../passwords/password.entity.js';
import { PasskeyChallengeEntity } from '../passkeys/passkey-challenge.entity.js';
import { PasskeyEntity } from '../passkeys/passkey.entity.js';
import { RecoveryCodeEntity } from '../second-factors/recovery-code.entity.js';
import { SecondFactorEntity } from '../second-factors/second-factor.entity.js';
import { LogInBucketEntity } from '../sessions/log-in-bucket.entity.js';
import { LogInNetworkEntity } from '../sessions/log-in-network.entity.js';
import { SessionEntity } from '../sessions/session.entity.js';
import { SigningKeyEntity } from '../sessions/signing-key.entity.js';
import { SsoFlowEntity } from '../sso/sso-flow.entity.js';
import { UserIdentityEntity } from '../sso/user-identity.entity.js';
import { TeamCapacityEntity } from '../teams/team-capacity.entity.js';
import { TeamCountEntity } from '../teams/team-count.entity.js';
import { DeletionAnswerEntity } from '../teams/team-deletion.entity.js';
import { TeamEntity } from '../teams/team.entity.js';
import { UserEntity } from '../users/user.entity.js';
import { WorkspaceEntity } from '../workspaces/workspace.entity.js';
import { Teams1790000000000 } from './migrations/1790000000000-teams.js';
import { KeySuccession1796000000000 } from './migrations/1796000000000-key-succession.js';
import { WorkspaceDeletion1797000000000 } from './migrations/1797000000000-workspace-deletion.js';
import { EmailSpelling1798000000000 } from './migrations/1798000000000-email-spelling.js';
import { OneDefaultWorkspace1801000000000 } from './migrations/1801000000000-one-default-workspace.js';
import { Invitations1802000000000 } from './migrations/1802000000000-invitations.js';
import { ForcedDeletion1803000000000 } from './migrations/1803000000000-forced-deletion.js';
import { TeamCount1804000000000 } from './migrations/1804000000000-team-count.js';
import { CallNonces1805000000000 } from './migrations/1805000000000-call-nonces.js';
import { Sessions1810000000000 } from './migrations/1810000000000-sessions.js';
import { InvitationLinks1811000000000 } from './migrations/1811000000000-invitation-links.js';
import { SecondFactors1812000000000 } from './migrations/1812000000000-second-factors.js';
import { SingleSignOn1813000000000 } from './migrations/1813000000000-single-sign-on.js';

/** The PostgreSQL schema that the teams service owns. */
export const teamsSchema = {
  entities: [
    ...eventEntities,
    ApiKeyEntity,
    DeletionAnswerEntity,
    ImageObjectEntity,
    ImagePolicyEntity,
    LogInBucketEntity,
    LogInNetworkEntity,
    MailEntity,
    MembershipEntity,
    OneTimeLinkEntity,
    PasskeyChallengeEntity,
    PasskeyEntity,
    PasswordEntity,
    RecoveryCodeEntity,
    SecondFactorEntity,
    SessionEntity,
    SigningKeyEntity,
    SsoFlowEntity,
    UserIdentityEntity,
    TeamCapacityEntity,
    TeamCountEntity,
    TeamEntity,
    UserEntity,
    WorkspaceEntity,
  ],
  migrations: [
    Teams1790000000000,
    KeySuccession1796000000000,
    WorkspaceDeletion1797000000000,
    EmailSpelling1798000000000,
    OneDefaultWorkspace1801000000000,
    Invitations1802000000000,
    ForcedDeletion1803000000000,
    TeamCount1804000000000,
    CallNonces1805000000000,
    Sessions1810000000000,
    InvitationLinks1811000000000,
    SecondFactors1812000000000,
    SingleSignOn1813000000000,
  ],
};
