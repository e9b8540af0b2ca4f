export { BaremetalAttempt } from './baremetal-attempt.js';
export {
  BaremetalChanged,
  baremetalChanged,
  BaremetalNodeSetAside,
  baremetalNodeSetAside,
} from './baremetal-events.js';
export {
  BaremetalCredential,
  type BaremetalDriver,
  BaremetalNode,
  BaremetalNodePage,
  BaremetalNodePath,
  baremetalNodes,
  type BaremetalNodeStatus,
  type HomeRule,
  ListBaremetalNodes,
  RegisterBaremetalNode,
  ReinstallCallback,
  UpdateBaremetalNode,
  UpdateBaremetalNodeBody,
} from './baremetal-node.js';
export {
  BaremetalDifference,
  BaremetalFindings,
  BaremetalHostSpecs,
  BaremetalRequirements,
  BaremetalSpecs,
} from './baremetal-specs.js';
export {
  baremetal,
  BaremetalCredentials,
  BaremetalError,
  BaremetalInstance,
  BaremetalPage,
  BaremetalPath,
  type BaremetalStatus,
  ListBaremetal,
  RequestBaremetal,
} from './baremetal.js';
export { EndSubscription, FindPlaces, FindSubscriptions, FoundSubscriptions, gpuaasBatches, Places } from './batch.js';
export {
  Cluster,
  ClusterChanged,
  clusterChanged,
  type ClusterDriverName,
  clusterPurpose,
  clusters,
  GpuaasPath,
  SetCluster,
  SetClusterBody,
} from './cluster.js';
export {
  CompatibleInstance,
  CompatibleInstances,
  ListCompatibleInstances,
  Connection,
  ConnectionList,
  ConnectionPod,
  connections,
  ReadConnections,
  RefreshBegun,
  RefreshConnections,
} from './connection.js';
export { RegionAdded, regionAdded, TeamCapacityChanged, teamCapacityChanged } from './events.js';
export { FindGpuService, GpuServiceOfRegion, gpuServices } from './gpu-service.js';
export { gpuHoldings, HoldingTeam, RegionalGpuHoldings, TeamGpuHoldings } from './holdings.js';
export {
  boardNames,
  Gpu,
  GpuNode,
  GpuSlice,
  GpuTenant,
  ListNodes,
  NodePage,
  NodePath,
  nodes,
  type NodeStatus,
  RegisterNode,
} from './node.js';
export { maxPodsPerReading, PodUsage, PodUsages, podUsages, ReadPodUsage } from './pod-usage.js';
export {
  CheckPodWorkload,
  LeasedSlice,
  PodStart,
  PodSubscription,
  PodWorkload,
  PodWorkloadChanged,
  podWorkloadChanged,
  podWorkloads,
  StartPodWorkload,
  tooFewVgpus,
} from './pod-workload.js';
export { ListPoolGpus, PoolGpu, PoolGpuPage, PoolGpuPath, poolGpus, PoolGpusQuery } from './pool-gpu.js';
export {
  AvailablePool,
  AvailablePoolPage,
  AvailablePoolsQuery,
  FindAvailablePools,
  AvailableRegionPage,
  AvailableRegionsQuery,
  CreatePool,
  ListPools,
  OfferedProfile,
  Pool,
  PoolPage,
  pools,
} from './pool.js';
export { CreateGpuaas, CreateRegion, Gpuaas, GpuaasPage, Region, RegionPage, regions } from './region.js';
export {
  ListAllSubscriptions,
  ListSubscriptions,
  MeteredSubscription,
  type MetricWindow,
  metricWindows,
  ReadUtilization,
  ReadUtilizationQuery,
  SubscriptionUtilization,
  utilizationPoints,
  ResizeBody,
  ResizeSubscription,
  Subscribe,
  Subscription,
  SubscriptionList,
  SubscriptionPage,
  SubscriptionPath,
  subscriptions,
  type SubscriptionStatus,
  Unsubscribe,
} from './subscription.js';
export {
  ListWorkloads,
  StartWorkload,
  Workload,
  WorkloadPage,
  WorkloadPath,
  workloads,
  type WorkloadStatus,
} from './workload.js';
