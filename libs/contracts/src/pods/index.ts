export {
  ChangeMounts,
  FindConnections,
  FindExposed,
  FindInstances,
  FindVolumes,
  FoundInstance,
  FoundInstances,
  FoundVolume,
  FoundVolumes,
  podBatches,
  PodOnSubscription,
  podsAtOnce,
  PodsAfter,
  PodsOnSubscriptions,
} from './batch.js';
export { PodConnections, podConnections } from './connection.js';
export {
  ExposedService,
  ExposedServiceList,
  ExposedServicePath,
  ExposedServiceQuery,
  exposedServices,
  type ExposedServiceStatus,
  ExposeService,
  FindExposedService,
  ListExposedServices,
  type ServiceProtocol,
  UpdateExposedService,
} from './exposed-service.js';
export { ClusterHoldings, podHoldings, RegionalPodHoldings, TeamPodHoldings } from './holdings.js';
export { Instance, InstanceList, instances, ListInstances } from './instance.js';
export { PodLogPage, podLogs, ReadPodLogs } from './log.js';
export { PodLimits, podLimits, SetPodLimits, SetTeamPodLimits, TeamPodLimits } from './pod-limits.js';
export {
  CreatePod,
  IdleStop,
  ListPods,
  Pod,
  PodAction,
  podActions,
  PodMount,
  PodPage,
  PodPath,
  pods,
  type PodStatus,
  type RestartPolicy,
  UpdatePod,
  UpdatePodBody,
} from './pod.js';
export {
  CreateSharedVolume,
  ListSharedVolumes,
  ResizeSharedVolume,
  ResizeSharedVolumeBody,
  SharedVolume,
  SharedVolumePage,
  SharedVolumePath,
  sharedVolumes,
  type VolumeStatus,
} from './shared-volume.js';
export {
  AddSshKey,
  RenameSshKey,
  RenameSshKeyBody,
  SshKey,
  SshKeyPage,
  SshKeyPath,
  sshKeys,
  sshKeysChanged,
} from './ssh-key.js';
export {
  LocateTerminal,
  OpenTerminal,
  OpenTerminalBody,
  TerminalPlace,
  terminalProtocol,
  terminals,
  terminalSizeLimit,
  TerminalTicket,
} from './terminal.js';
export { UserKeysChanged, userKeysChanged } from './user-keys.js';
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
  vmChanged,
  VmPage,
  VmPath,
  vms,
  type VmStatus,
} from './vm.js';
