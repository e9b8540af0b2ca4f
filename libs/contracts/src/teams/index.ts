export {
  AddedMembers,
  AddMembers,
  CreateTeamWithPolicy,
  FindMembers,
  FindWorkspaces,
  FoundMember,
  FoundMembers,
  FoundWorkspaces,
  NamedTeam,
  NamedTeams,
  teamBatches,
  TeamsNamedAfter,
} from './batch.js';
export { Credential, credentials, CredentialsChanged, credentialsChanged, CredentialTeam, KeyDigest } from './credential.js';
export { LookUpRoles, LookUpTeams, RoleInTeam, RolesInTeams, teamDirectory, TeamsAfter, TeamUpdates, UserInTeam } from './directory.js';
export {
  deletionCalledOff,
  deletionHolders,
  maxWorkspacesPerUpdate,
  MembershipChanged,
  membershipChanged,
  TeamChanged,
  teamChanged,
  TeamDeletionAnswered,
  teamDeletionAnswered,
  TeamDeletionRequested,
  teamDeletionRequested,
  TeamStanding,
  TeamUpdate,
  teamUpdated,
  WorkspaceDeletionRequested,
  workspaceDeletionRequested,
  WorkspaceStanding,
} from './events.js';
export {
  AssignPolicy,
  AssignPolicyBody,
  CheckImage,
  CreateImagePolicy,
  ImageObject,
  imagePolicies,
  ImagePolicy,
  ImagePolicyPage,
  ImagePolicyPath,
  ImageVerdict,
  ListTeamImages,
  NewImageObject,
  TeamImages,
  UpdateImagePolicy,
  UpdateImagePolicyBody,
} from './image-policy.js';
export { Invitation, InvitationList, InvitationPath, invitations } from './invitation.js';
export { AddMember, ChangeRole, ChangeRoleBody, IssueMemberKey, KeyTerms, ListMembers, MemberPage, MemberPath, members } from './member.js';
export { ChangePassword, CreateLink, links, OneTimeLink, passwords, ResetPassword, UsedLink, UseLink } from './password.js';
export { RegionalHoldings, ResourceHoldings, ResourceOverview } from './resource-overview.js';
export {
  NewPasskey,
  NewSecondFactor,
  Passkey,
  PasskeyAnswer,
  PasskeyAnswerFrom,
  PasskeyList,
  PasskeyOptions,
  PasskeyPath,
  passkeys,
  RecoveryCodes,
  SecondFactorCode,
  secondFactors,
  SecondStep,
  SecondStepFrom,
} from './second-factor.js';
export { SentInvitation } from './sent-invitation.js';
export {
  EndedSession,
  LoggedIn,
  LogIn,
  LogInFrom,
  OfUser,
  OpenedSession,
  RefreshFrom,
  RefreshToken,
  Session,
  SessionCredential,
  SessionKey,
  SessionKeys,
  SessionList,
  SessionOrigin,
  SessionPath,
  sessions,
} from './session.js';
export { singleSignOn, SsoAnswer, SsoCallback, SsoFlow, SsoProvider, SsoProviderPath, SsoProviders } from './sso.js';
export { TeamHolding } from './team-holding.js';
export {
  CreateTeam,
  DeleteTeam,
  DeleteTeamQuery,
  DeletingTeam,
  type MemberStatus,
  memberStatuses,
  NewMember,
  PolicyInfo,
  Team,
  TeamDeletion,
  TeamMember,
  TeamPage,
  teams,
  type TeamStatus,
  teamStatuses,
  UpdateTeam,
  UpdateTeamBody,
  WorkspaceName,
} from './team.js';
export { type PlatformRole, platformRoles, UpdateProfile, User, UserKey, users, UserTeam } from './user.js';
export {
  CreateWorkspace,
  ListWorkspaces,
  RenameWorkspace,
  RenameWorkspaceBody,
  Workspace,
  WorkspacePage,
  WorkspacePath,
  workspaces,
} from './workspace.js';
