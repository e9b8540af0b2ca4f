import { eventEntities } from '@atoll/events';
import { AccountCheckEntity } from '../model/account-check.entity.js';
import { ApiKeyEntity } from '../model/api-key.entity.js';
import { ImageObjectEntity, ImagePolicyEntity } from '../model/image-policy.entity.js';
import { OneTimeLinkEntity } from '../model/one-time-link.entity.js';
import { MailEntity } from '../model/mail.entity.js';
import { MembershipEntity } from '../model/membership.entity.js';
import { PasswordEntity } from '../model/password.entity.js';
import { PasskeyChallengeEntity } from '../model/passkey-challenge.entity.js';
import { PasskeyEntity } from '../model/passkey.entity.js';
import { RecoveryCodeEntity } from '../model/recovery-code.entity.js';
import { SecondFactorEntity } from '../model/second-factor.entity.js';
import { KeyPepperEntity } from '../model/key-pepper.entity.js';
import { LogInBucketEntity } from '../model/log-in-bucket.entity.js';
import { LogInNetworkEntity } from '../model/log-in-network.entity.js';
import { SessionEntity } from '../model/session.entity.js';
import { SigningKeyEntity } from '../model/signing-key.entity.js';
import { SsoFlowEntity } from '../model/sso-flow.entity.js';
import { UserIdentityEntity } from '../model/user-identity.entity.js';
import { TeamCapacityEntity } from '../model/team-capacity.entity.js';
import { TeamCountEntity } from '../model/team-count.entity.js';
import { DeletionAnswerEntity } from '../model/team-deletion.entity.js';
import { TeamEntity } from '../model/team.entity.js';
import { UserEntity } from '../model/user.entity.js';
import { WorkspaceEntity } from '../model/workspace.entity.js';
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
import { AcceptedMemberships1874000000000 } from './migrations/1874000000000-accepted-memberships.js';
import { KeyPepper1875000000000 } from './migrations/1875000000000-key-pepper.js';
import { LinksByOwners1881000000000 } from './migrations/1881000000000-links-by-owners.js';
import { MailByTeam1882000000000 } from './migrations/1882000000000-mail-by-team.js';
import { RefreshAttempts1887000000000 } from './migrations/1887000000000-refresh-attempts.js';
import { FirstMemberships1889000000000 } from './migrations/1889000000000-first-memberships.js';
import { EmptyAccounts1890000000000 } from './migrations/1890000000000-empty-accounts.js';
import { DeletedTeams1880000001000 } from './migrations/1880000001000-deleted-teams.js';
import { OpenMemberships1880000000000 } from './migrations/1880000000000-open-memberships.js';
import { MailByKind1879000000000 } from './migrations/1879000000000-mail-by-kind.js';
import { KeysWithoutFactors1891000000000 } from './migrations/1891000000000-keys-without-factors.js';
import { LinksByStarts1891000001000 } from './migrations/1891000001000-links-by-starts.js';
import { HoldersOfKeys1894000000000 } from './migrations/1894000000000-holders-of-keys.js';
import { LinksThatRemoveFactors1873000000000 } from './migrations/1873000000000-links-that-remove-factors.js';
import { SingleSignOn1813000000000 } from './migrations/1813000000000-single-sign-on.js';

/** The PostgreSQL schema that the teams service owns. */
export const teamsSchema = {
  entities: [
    ...eventEntities,
    AccountCheckEntity,
    ApiKeyEntity,
    DeletionAnswerEntity,
    ImageObjectEntity,
    ImagePolicyEntity,
    KeyPepperEntity,
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
    LinksThatRemoveFactors1873000000000,
    AcceptedMemberships1874000000000,
    KeyPepper1875000000000,
    MailByKind1879000000000,
    OpenMemberships1880000000000,
    DeletedTeams1880000001000,
    LinksByOwners1881000000000,
    MailByTeam1882000000000,
    RefreshAttempts1887000000000,
    FirstMemberships1889000000000,
    EmptyAccounts1890000000000,
    KeysWithoutFactors1891000000000,
    LinksByStarts1891000001000,
    HoldersOfKeys1894000000000,
  ],
};
