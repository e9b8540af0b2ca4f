export { eventLog, EventsAfter, EventsPage, PublishedEvent } from './event-log.js';
export { isPlatformAdmin, notFound, permissions, requirePermission, requirePlatformAdmin, requireUser } from './access.js';
export type { Permission } from './access.js';
export {
  currencies,
  Currency,
  CreatePrice,
  ListPrices,
  Price,
  PricePage,
  PricesAfter,
  PricesInForce,
  priceChanged,
  priceDirectory,
  prices,
} from './billing/price.js';
export {
  billingIntervals,
  ComparisonPath,
  ComparisonQuery,
  ComparisonZone,
  RegionalBillingQuery,
  TeamBillingQuery,
  WorkspaceBillingQuery,
} from './billing/query.js';
export type { BillingInterval, BillingRange } from './billing/query.js';
export { BilledInstance, InstancesReport, instanceReports } from './billing/instances-report.js';
export {
  BilledGroup,
  BilledMonth,
  BilledPool,
  BilledSubscription,
  BilledVolume,
  BilledWorkspace,
  BillingBucket,
  BillingItem,
  BillingReport,
  ComparisonReport,
  ItemChange,
  PoolsReport,
  StorageReport,
  UnpricedUsage,
  WorkspacesReport,
  billingReports,
} from './billing/report.js';
export { readUsageEvents } from './billing/usage-check.js';
export { UsageEvent, type UsageAttributes, type UsageKind } from './billing/usage-event.js';
export { RecordUsage, UsageRecorded, UsageTold, gpuUsageTold, podUsageTold, usage } from './billing/usage.js';
export { teamRoles } from './caller.js';
export type { CallContext, Caller, CallerCredential, CallerTeam, Idempotency, SystemCaller, TeamRole, UserCaller } from './caller.js';
export { broadcast, contract, event, operation } from './contract.js';
export type { BroadcastType, Contract, EventType, Operation, ReadsItself, Wire } from './contract.js';
export {
  DecimalText,
  Email,
  Flag,
  Instant,
  ListOf,
  Names,
  Nested,
  NumberedId,
  NumberedIds,
  OneOf,
  QueryFlag,
  Text,
  Uuid,
  WholeNumber,
  emailSpelling,
  numberedIdPattern,
} from './fields.js';
export { textPatterns } from './text.js';
export type { FieldOptions } from './fields.js';
export {
  CompatibleInstance,
  CompatibleInstances,
  Connection,
  ConnectionList,
  ConnectionPod,
  ConnectionService,
  ConnectionSsh,
  ReadConnections,
  RefreshBegun,
  RefreshConnections,
  connections,
} from './gpuaas/connection.js';
export { BaremetalAttempt } from './gpuaas/baremetal-attempt.js';
export {
  BaremetalCredential,
  BaremetalHook,
  BaremetalNode,
  BaremetalNodePage,
  BaremetalNodePath,
  BaremetalReinstall,
  ListBaremetalNodes,
  RegisterBaremetalNode,
  ReinstallCallback,
  UpdateBaremetalNode,
  UpdateBaremetalNodeBody,
  baremetalNodeStatuses,
  baremetalNodes,
} from './gpuaas/baremetal-node.js';
export { BaremetalChanged, BaremetalNodeSetAside, baremetalChanged, baremetalNodeSetAside } from './gpuaas/baremetal-events.js';
export { UserKeysChanged, userKeysChanged } from './pods/user-keys.js';
export {
  BaremetalDifference,
  BaremetalFindings,
  BaremetalHostSpecs,
  BaremetalRequirements,
  BaremetalSpecs,
} from './gpuaas/baremetal-specs.js';
export type { BaremetalDriver, BaremetalNodeStatus, HomeRule } from './gpuaas/baremetal-node.js';
export {
  BaremetalCredentials,
  BaremetalError,
  BaremetalInstance,
  BaremetalPage,
  BaremetalPath,
  ListBaremetal,
  RequestBaremetal,
  RequestedSpecs,
  baremetal,
  baremetalStatuses,
} from './gpuaas/baremetal.js';
export type { BaremetalStatus } from './gpuaas/baremetal.js';
export { RegionAdded, TeamCapacityChanged, regionAdded, teamCapacityChanged } from './gpuaas/events.js';
export { FindGpuService, GpuServiceOfRegion, gpuServices } from './gpuaas/gpu-service.js';
export {
  Gpu,
  GpuNode,
  GpuSlice,
  GpuTenant,
  ListNodes,
  NodeGpus,
  NodePage,
  NodePath,
  RegisterNode,
  boardNames,
  nodeStatuses,
  nodes,
} from './gpuaas/node.js';
export type { NodeStatus } from './gpuaas/node.js';
export {
  AvailablePool,
  AvailablePoolPage,
  AvailablePoolsQuery,
  AvailableRegion,
  AvailableRegionPage,
  AvailableRegionsQuery,
  CreatePool,
  ListPools,
  OfferedProfile,
  Pool,
  PoolPage,
  pools,
} from './gpuaas/pool.js';
export {
  ListPoolGpus,
  PoolGpu,
  PoolGpuPage,
  PoolGpuPath,
  PoolGpuSlice,
  PoolGpusQuery,
  PoolGpuTenant,
  poolGpus,
} from './gpuaas/pool-gpu.js';
export { CreateGpuaas, CreateRegion, Gpuaas, GpuaasPage, Region, RegionPage, regions } from './gpuaas/region.js';
export { EndSubscription, FindPlaces, gpuaasBatches, Places } from './gpuaas/batch.js';
export { FindExposed, FindInstances, FoundInstance, FoundInstances, podBatches } from './pods/batch.js';
export {
  ListAllSubscriptions,
  ListSubscriptions,
  MeteredSubscription,
  ResizeBody,
  ResizeSubscription,
  Subscribe,
  Subscription,
  SubscriptionList,
  SubscriptionMetrics,
  SubscriptionPage,
  SubscriptionPath,
  SubscriptionResize,
  Unsubscribe,
  metricWindows,
  subscriptionStatuses,
  subscriptions,
} from './gpuaas/subscription.js';
export type { MetricWindow, SubscriptionStatus } from './gpuaas/subscription.js';
export { ListWorkloads, StartWorkload, Workload, WorkloadPage, WorkloadPath, workloadStatuses, workloads } from './gpuaas/workload.js';
export type { WorkloadStatus } from './gpuaas/workload.js';
export {
  Cluster,
  ClusterChanged,
  GpuaasPath,
  SetCluster,
  SetClusterBody,
  clusterChanged,
  clusterPurpose,
  clusters,
} from './gpuaas/cluster.js';
export type { ClusterDriverName } from './gpuaas/cluster.js';
export {
  CheckPodWorkload,
  LeasedSlice,
  PodStart,
  PodSubscription,
  PodWorkload,
  PodWorkloadChanged,
  StartPodWorkload,
  podWorkloadChanged,
  podWorkloads,
} from './gpuaas/pod-workload.js';
export { PodUsage, PodUsages, ReadPodUsage, maxPodsPerReading, podUsages } from './gpuaas/pod-usage.js';
export { GpuHoldings, HoldingTeam, RegionalGpuHoldings, TeamGpuHoldings, gpuHoldings } from './gpuaas/holdings.js';
export { IpWhitelist, addressAllowed, addressInRanges, parseAddressRange, whitelistEntries } from './ip-whitelist.js';
export type { AddressRange } from './ip-whitelist.js';
export { IncludeEnded, Nothing, PageFromOne, PageFromOneOrAll, PageFromZero, Pagination, pageWindow } from './page.js';
export {
  CreatePod,
  IdleStop,
  ListPods,
  Pod,
  PodAction,
  PodMount,
  PodPage,
  PodPath,
  UpdatePod,
  UpdatePodBody,
  podActions,
  podStatuses,
  pods,
  restartPolicies,
} from './pods/pod.js';
export {
  ExposeService,
  ExposedService,
  ExposedServiceList,
  ExposedServicePath,
  ExposedServiceQuery,
  FindExposedService,
  UpdateExposedService,
  exposedServices,
} from './pods/exposed-service.js';
export type { ExposedServiceStatus, ServiceProtocol } from './pods/exposed-service.js';
export { Instance, InstanceList, ListInstances, instances } from './pods/instance.js';
export { PodConnections, podConnections } from './pods/connection.js';
export {
  LocateTerminal,
  OpenTerminal,
  OpenTerminalBody,
  terminalProtocol,
  TerminalPlace,
  terminals,
  terminalSizeLimit,
  TerminalTicket,
} from './pods/terminal.js';
export { ClusterHoldings, PodHoldings, RegionalPodHoldings, TeamPodHoldings, podHoldings } from './pods/holdings.js';
export type { PodStatus, RestartPolicy } from './pods/pod.js';
export { PodLimits, SetPodLimits, SetTeamPodLimits, TeamPodLimits, podLimits } from './pods/pod-limits.js';
export {
  CreateSharedVolume,
  ListSharedVolumes,
  ResizeSharedVolume,
  ResizeSharedVolumeBody,
  SharedVolume,
  SharedVolumePage,
  SharedVolumePath,
  sharedVolumes,
} from './pods/shared-volume.js';
export type { VolumeStatus } from './pods/shared-volume.js';
export {
  CreateFlavour,
  CreateVm,
  Flavour,
  FlavourPage,
  ListVms,
  UpdateVm,
  UpdateVmBody,
  Vm,
  VmChanged,
  VmPage,
  VmPath,
  vmChanged,
  vms,
} from './pods/vm.js';
export type { VmStatus } from './pods/vm.js';
export {
  AddSshKey,
  RenameSshKey,
  RenameSshKeyBody,
  SshKey,
  SshKeyPage,
  SshKeyPath,
  SshKeysChanged,
  sshKeys,
  sshKeysChanged,
} from './pods/ssh-key.js';
export {
  LookUpRoles,
  LookUpTeams,
  RoleInTeam,
  RolesInTeams,
  TeamUpdates,
  TeamsAfter,
  UserInTeam,
  teamDirectory,
} from './teams/directory.js';
export { Credential, CredentialTeam, CredentialsChanged, KeyDigest, credentials, credentialsChanged } from './teams/credential.js';
export {
  MembershipChanged,
  TeamChanged,
  TeamDeletionAnswered,
  TeamDeletionRequested,
  TeamStanding,
  TeamUpdate,
  WorkspaceDeletionRequested,
  WorkspaceStanding,
  deletionCalledOff,
  deletionHolders,
  maxWorkspacesPerUpdate,
  membershipChanged,
  teamChanged,
  teamDeletionAnswered,
  teamDeletionRequested,
  teamUpdated,
  workspaceDeletionRequested,
} from './teams/events.js';
export {
  AssignPolicy,
  AssignPolicyBody,
  CheckImage,
  CreateImagePolicy,
  ImageObject,
  ImagePolicy,
  ImagePolicyPage,
  ImagePolicyPath,
  ImageVerdict,
  ListTeamImages,
  NewImageObject,
  TeamImages,
  UpdateImagePolicy,
  UpdateImagePolicyBody,
  imagePolicies,
} from './teams/image-policy.js';
export {
  AddMember,
  ChangeRole,
  ChangeRoleBody,
  IssueMemberKey,
  KeyTerms,
  ListMembers,
  MemberPage,
  MemberPath,
  members,
} from './teams/member.js';
export { Invitation, InvitationList, InvitationPath, invitations } from './teams/invitation.js';
export { ChangePassword, CreateLink, OneTimeLink, ResetPassword, UseLink, UsedLink, links, passwords } from './teams/password.js';
export {
  NewPasskey,
  NewSecondFactor,
  Passkey,
  PasskeyAnswer,
  PasskeyAnswerFrom,
  PasskeyList,
  PasskeyOptions,
  PasskeyPath,
  RecoveryCodes,
  SecondFactorCode,
  SecondStep,
  SecondStepFrom,
  passkeys,
  secondFactors,
} from './teams/second-factor.js';
export { SsoAnswer, SsoCallback, SsoFlow, SsoProvider, SsoProviderPath, SsoProviders, singleSignOn } from './teams/sso.js';
export { SentInvitation } from './teams/sent-invitation.js';
export {
  EndedSession,
  LogIn,
  LogInFrom,
  LoggedIn,
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
} from './teams/session.js';
export {
  AddMembers,
  AddedMembers,
  CreateTeamWithPolicy,
  FindMembers,
  FoundMember,
  FindWorkspaces,
  FoundMembers,
  FoundWorkspaces,
  NamedTeam,
  NamedTeams,
  OnboardUser,
  TeamsNamedAfter,
  WelcomedUser,
  WelcomeUser,
  teamBatches,
} from './teams/batch.js';
export { RegionalHoldings, ResourceHoldings, ResourceOverview } from './teams/resource-overview.js';
export { TeamHolding } from './teams/team-holding.js';
export {
  CreateTeam,
  DeleteTeam,
  DeleteTeamQuery,
  DeletingTeam,
  NewMember,
  PolicyInfo,
  Team,
  TeamDeletion,
  TeamMember,
  TeamPage,
  UpdateTeam,
  UpdateTeamBody,
  WorkspaceName,
  memberStatuses,
  teamStatuses,
  teams,
} from './teams/team.js';
export { TeamPath } from './team-path.js';
export type { MemberStatus, TeamStatus } from './teams/team.js';
export { UpdateProfile, User, UserKey, UserTeam, platformRoles, users } from './teams/user.js';
export type { PlatformRole } from './teams/user.js';
export {
  CreateWorkspace,
  ListWorkspaces,
  RenameWorkspace,
  RenameWorkspaceBody,
  Workspace,
  WorkspacePage,
  WorkspacePath,
  workspaces,
} from './teams/workspace.js';
export { podLogs, PodLogLine, PodLogPage, ReadPodLogs } from './pods/log.js';
