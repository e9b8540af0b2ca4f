export { ClusterDriver } from './cluster-driver.js';
export type { Capabilities } from './cluster-driver.js';
export { ClusterError } from './cluster-error.js';
export { DockerDriver, dockerCapabilities } from './docker/docker-driver.js';
export { openDocker } from './docker/docker-settings.js';
export type { DockerSettings } from './docker/docker-settings.js';
export type { Certificate, Door, ObjectRef, PodRun, RunRef, VmRun, VolumeRef } from './objects.js';
export type {
  DoorSight,
  Exit,
  FoundObject,
  LogBatch,
  LogLine,
  RunSight,
  Trouble,
  VolumeSight,
} from './observations.js';
export { commandOfLine } from './shell.js';
export type { PodConnection, Shell, ShellExit, ShellRequest, TerminalSize } from './shell.js';
export { scenarioOf } from './simulated/scenario.js';
export { simulatedCapabilities } from './simulated/simulated-cluster.js';
export { sealedDoors } from './simulated/simulated-doors.js';
export { SimulatedWorld } from './simulated/simulated-world.js';
