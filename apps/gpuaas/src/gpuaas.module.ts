import { Statements, Transactions } from '@atoll/database';
import { MachineDeskModule, MachineWorkers } from '@atoll/state-machine';
import { WholeListings } from '@atoll/rpc';
import { ExpiredClosings, TeamDirectoryModule } from '@atoll/team-directory';
import { Module, type Provider } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { baremetalControllers, baremetalProviders } from './baremetal/baremetal-providers.js';
import { TeamCapacity } from './capacity/team-capacity.js';
import { ClusterChecks } from './clusters/cluster-checks.js';
import { ClusterRows } from './clusters/cluster-rows.js';
import { ClustersController } from './clusters/cluster.controller.js';
import { ClustersService } from './clusters/cluster.service.js';
import { ConsoleHostWarning } from './clusters/console-host.js';
import { ConnectionsController } from './connections/connection.controller.js';
import { ConnectionRefresh } from './connections/connection-refresh.js';
import { EndedConnections } from './connections/ended-connections.js';
import { ConnectionsService } from './connections/connection.service.js';
import { ConnectionSource } from './connections/connection-source.js';
import { PodsAsSource } from './connections/pods-as-source.js';
import { NodeDriver } from './driver/node-driver.js';
import { SimulatedFaults } from './driver/simulated-faults.js';
import { SimulatedNodes } from './driver/simulated-nodes.js';
import { GpuReader } from './sharing/gpu-reader.js';
import { GpuSteps } from './sharing/gpu-steps.js';
import { GpuaasSettings } from './gpuaas-settings.js';
import { Allocation } from './allocation/allocation.js';
import { LeaseRelease } from './allocation/lease-release.js';
import { WaitingQueue } from './allocation/waiting-queue.js';
import { metricsSource } from './metrics/choose-metrics-source.js';
import { MetricsSource } from './metrics/metrics-source.js';
import { NodeTroubles } from './sharing/node-troubles.js';
import { NodesController } from './nodes/node.controller.js';
import { NodeSteps } from './nodes/node-steps.js';
import { NodeReader } from './nodes/node-reader.js';
import { NodesService } from './nodes/node.service.js';
import { PoolCatalogue } from './sharing/pool-catalogue.js';
import { PoolGpusController } from './catalogue/pool-gpu.controller.js';
import { PoolGpusService } from './catalogue/pool-gpu.service.js';
import { PoolsController } from './catalogue/pool.controller.js';
import { PoolsService } from './catalogue/pool.service.js';
import { KnownPrices } from './prices/known-prices.js';
import { PriceSnapshot } from './prices/price-snapshot.js';
import { VmInstances } from './connections/vm-instances.js';
import { GpuServicesController } from './regions/gpu-service.controller.js';
import { RegionsController } from './regions/region.controller.js';
import { RegionsService } from './regions/region.service.js';
import { Entitlements } from './allocation/entitlements.js';
import { SubscriptionAllocation } from './subscriptions/subscription-allocation.js';
import { BatchesController } from './subscriptions/batch.controller.js';
import { PlacesService } from './subscriptions/places.js';
import { SubscriptionAccepting } from './subscriptions/subscription-accepting.js';
import { SubscriptionsController } from './subscriptions/subscription.controller.js';
import { SubscriptionListing } from './subscriptions/subscription-listing.js';
import { PodEnds } from './subscriptions/pod-ends.js';
import { SubscriptionResizing } from './subscriptions/subscription-resizing.js';
import { SubscriptionSteps } from './subscriptions/subscription-steps.js';
import { SubscriptionsService } from './subscriptions/subscription.service.js';
import { HoldingsController } from './teams/holdings.controller.js';
import { HoldingsService } from './teams/holdings.service.js';
import { TeamDeletion } from './teams/team-deletion.js';
import { UsageFacts } from './usage/usage-facts.js';
import { PodUsageController } from './workloads/pod-usage.controller.js';
import { PodUsageReader } from './workloads/pod-usage-reader.js';
import { PodWorkloadsController } from './workloads/pod-workload.controller.js';
import { PodWorkloadsService } from './workloads/pod-workload.service.js';
import { WorkloadsController } from './workloads/workload.controller.js';
import { WorkloadRoom } from './workloads/workload-room.js';
import { WorkloadStarting } from './workloads/workload-starting.js';
import { WorkloadSteps } from './subscriptions/workload-steps.js';
import { WorkloadsService } from './workloads/workload.service.js';

const workers: Provider = {
  provide: MachineWorkers,
  inject: [GpuSteps, NodeSteps, SubscriptionSteps, WorkloadSteps, DataSource, Transactions, GpuaasSettings],
  useFactory: (
    gpus: GpuSteps,
    nodes: NodeSteps,
    subscriptions: SubscriptionSteps,
    workloads: WorkloadSteps,
    dataSource: DataSource,
    transactions: Transactions,
    { steps: concurrency, stepsPerNode: laneConcurrency, historyRetentionDays: historyDays, workers }: GpuaasSettings,
  ) => {
    const options = { service: 'gpuaas', concurrency, laneConcurrency, historyDays, ...workers };
    return new MachineWorkers([gpus, nodes, subscriptions, workloads], dataSource, transactions, options);
  },
};

/** Regions, nodes and GPUs, pools, subscriptions and workloads; bare metal. */
@Module({
  imports: [MachineDeskModule.forRoot({ service: 'gpuaas' }), TeamDirectoryModule.forRoot({ service: 'gpuaas' })],
  controllers: [
    ...baremetalControllers,
    BatchesController,
    ClustersController,
    ConnectionsController,
    GpuServicesController,
    HoldingsController,
    NodesController,
    PodUsageController,
    PodWorkloadsController,
    PoolGpusController,
    PoolsController,
    RegionsController,
    SubscriptionsController,
    WorkloadsController,
  ],
  providers: [
    ...baremetalProviders,
    Allocation,
    ClusterChecks,
    ConsoleHostWarning,
    ClusterRows,
    ClustersService,
    ConnectionRefresh,
    EndedConnections,
    ConnectionsService,
    Entitlements,
    ExpiredClosings,
    GpuReader,
    GpuSteps,
    HoldingsService,
    KnownPrices,
    LeaseRelease,
    NodeSteps,
    NodeReader,
    NodesService,
    NodeTroubles,
    PodEnds,
    PodUsageReader,
    PodWorkloadsService,
    PlacesService,
    PoolCatalogue,
    PoolGpusService,
    PoolsService,
    PriceSnapshot,
    RegionsService,
    SimulatedFaults,
    SubscriptionAccepting,
    SubscriptionAllocation,
    SubscriptionListing,
    SubscriptionResizing,
    SubscriptionSteps,
    SubscriptionsService,
    TeamCapacity,
    TeamDeletion,
    UsageFacts,
    VmInstances,
    WorkloadRoom,
    WorkloadStarting,
    WaitingQueue,
    WholeListings,
    WorkloadSteps,
    WorkloadsService,
    workers,
    { provide: ConnectionSource, useClass: PodsAsSource },
    { provide: MetricsSource, useFactory: metricsSource, inject: [GpuaasSettings, Statements] },
    { provide: NodeDriver, useClass: SimulatedNodes },
  ],
})
export class GpuaasModule {}
