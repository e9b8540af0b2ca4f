export { BaremetalAttempt } from './baremetal-attempt.js';
export { BaremetalChanged, baremetalChanged, BaremetalNodeSetAside, baremetalNodeSetAside } from './baremetal-events.js';
export {
  BaremetalCredential,
  type BaremetalDriver,
  BaremetalHook,
  BaremetalNode,
  BaremetalNodePage,
  BaremetalNodePath,
  baremetalNodes,
  type BaremetalNodeStatus,
  baremetalNodeStatuses,
  BaremetalReinstall,
  type HomeRule,
  ListBaremetalNodes,
  RegisterBaremetalNode,
  ReinstallCallback,
  UpdateBaremetalNode,
  UpdateBaremetalNodeBody,
} from './baremetal-node.js';
export { BaremetalDifference, BaremetalFindings, BaremetalHostSpecs, BaremetalRequirements, BaremetalSpecs } from './baremetal-specs.js';
export {
  baremetal,
  BaremetalCredentials,
  BaremetalError,
  BaremetalInstance,
  BaremetalPage,
  BaremetalPath,
  type BaremetalStatus,
  baremetalStatuses,
  ListBaremetal,
  RequestBaremetal,
  RequestedSpecs,
} from './baremetal.js';
export { EndSubscription, FindPlaces, gpuaasBatches, Places } from './batch.js';
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
  ConnectionService,
  ConnectionSsh,
  ReadConnections,
  RefreshBegun,
  RefreshConnections,
} from './connection.js';
export { RegionAdded, regionAdded, TeamCapacityChanged, teamCapacityChanged } from './events.js';
export { FindGpuService, GpuServiceOfRegion, gpuServices } from './gpu-service.js';
export { GpuHoldings, gpuHoldings, HoldingTeam, RegionalGpuHoldings, TeamGpuHoldings } from './holdings.js';
export {
  boardNames,
  Gpu,
  GpuNode,
  GpuSlice,
  GpuTenant,
  ListNodes,
  NodeGpus,
  NodePage,
  NodePath,
  nodes,
  type NodeStatus,
  nodeStatuses,
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
export { ListPoolGpus, PoolGpu, PoolGpuPage, PoolGpuPath, poolGpus, PoolGpuSlice, PoolGpusQuery, PoolGpuTenant } from './pool-gpu.js';
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
  UtilizationPoint,
  utilizationPoints,
  ResizeBody,
  ResizeSubscription,
  Subscribe,
  Subscription,
  SubscriptionList,
  SubscriptionMetrics,
  SubscriptionPage,
  SubscriptionPath,
  SubscriptionResize,
  subscriptions,
  subscriptionsWithoutLimit,
  type SubscriptionStatus,
  subscriptionStatuses,
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
  workloadStatuses,
} from './workload.js';
