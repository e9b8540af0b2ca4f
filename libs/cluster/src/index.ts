export { ClusterDriver } from './cluster-driver.js';
export type { Capabilities, ClusterCheck } from './cluster-driver.js';
export { ClusterError } from './cluster-error.js';
export type { ClusterErrorCode } from './cluster-error.js';
export { DockerDriver, dockerCapabilities } from './docker/docker-driver.js';
export { openDocker } from './docker/docker-settings.js';
export type { DockerSettings } from './docker/docker-settings.js';
export type { DockerDriverOptions } from './docker/docker-driver.js';
export type { PodDefaults } from './docker/container-body.js';
export type { EngineAddress } from './docker/engine-connection.js';
export type {
  Certificate,
  Door,
  ObjectKind,
  ObjectRef,
  Owner,
  PodRun,
  PodSlice,
  RunRef,
  Transport,
  VmRun,
  Volume,
  VolumeMount,
  VolumeRef,
} from './objects.js';
export type {
  DoorSight,
  Exit,
  FoundObject,
  Hint,
  LogBatch,
  LogLine,
  PullProgress,
  RunSight,
  Trouble,
  VolumeSight,
} from './observations.js';
export { commandOfLine } from './shell.js';
export type { PodConnection, Shell, ShellExit, ShellRequest, TerminalSize } from './shell.js';
export { scenarioOf } from './simulated/scenario.js';
export { SimulatedCluster, simulatedCapabilities } from './simulated/simulated-cluster.js';
export { sealedDoors } from './simulated/simulated-doors.js';
export { SimulatedFaults } from './simulated/simulated-faults.js';
export type { SimulatedFault, SimulatedOperation } from './simulated/simulated-faults.js';
export type { SimulatedStore } from './simulated/simulated-store.js';
export { SimulatedWorld } from './simulated/simulated-world.js';
export type { SimulatedOptions } from './simulated/simulated-world.js';
