import { Transactions } from '@atoll/database';
import { MachineWorkers } from '@atoll/state-machine';
import { TeamDirectoryModule } from '@atoll/team-directory';
import { Module, type Provider } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { TeamCapacity } from './capacity/team-capacity.js';
import { ConnectionsController } from './connections/connection.controller.js';
import { ConnectionRefresh } from './connections/connection-refresh.js';
import { ConnectionsService } from './connections/connection.service.js';
import { ConnectionSource, NoPods } from './connections/connection-source.js';
import { NodeDriver } from './driver/node-driver.js';
import { SimulatedFaults } from './driver/simulated-faults.js';
import { SimulatedNodes } from './driver/simulated-nodes.js';
import { GpuMachine } from './gpus/gpu-machine.js';
import { GpuaasSettings } from './gpuaas-settings.js';
import { Placement } from './leases/placement.js';
import { metricsSource } from './metrics/choose-metrics-source.js';
import { MetricsSource } from './metrics/metrics-source.js';
import { NodesController } from './nodes/node.controller.js';
import { NodeMachine } from './nodes/node-machine.js';
import { NodeReader } from './nodes/node-reader.js';
import { NodesService } from './nodes/node.service.js';
import { PoolCatalogue } from './pools/pool-catalogue.js';
import { PoolsController } from './pools/pool.controller.js';
import { PoolsService } from './pools/pool.service.js';
import { KnownPrices } from './prices/known-prices.js';
import { PriceSnapshot } from './prices/price-snapshot.js';
import { RegionsController } from './regions/region.controller.js';
import { RegionsService } from './regions/region.service.js';
import { Entitlements } from './subscriptions/entitlements.js';
import { SubscriptionsController } from './subscriptions/subscription.controller.js';
import { SubscriptionListing } from './subscriptions/subscription-listing.js';
import { SubscriptionMachine } from './subscriptions/subscription-machine.js';
import { SubscriptionsService } from './subscriptions/subscription.service.js';
import { HoldingsController } from './teams/holdings.controller.js';
import { HoldingsService } from './teams/holdings.service.js';
import { TeamDeletion } from './teams/team-deletion.js';
import { TeamEnding } from './teams/team-ending.js';
import { TeamGate } from './teams/team-gate.js';
import { UsageFacts } from './usage/usage-facts.js';
import { WorkloadsController } from './workloads/workload.controller.js';
import { WorkloadMachine } from './workloads/workload-machine.js';
import { WorkloadsService } from './workloads/workload.service.js';

const workers: Provider = {
  provide: MachineWorkers,
  inject: [GpuMachine, NodeMachine, SubscriptionMachine, WorkloadMachine, DataSource, Transactions, GpuaasSettings],
  useFactory: (
    gpus: GpuMachine,
    nodes: NodeMachine,
    subscriptions: SubscriptionMachine,
    workloads: WorkloadMachine,
    dataSource: DataSource,
    transactions: Transactions,
    { steps: concurrency, stepsPerNode: laneConcurrency, workers }: GpuaasSettings,
  ) => {
    const options = { service: 'gpuaas', concurrency, laneConcurrency, ...workers };
    return new MachineWorkers([gpus, nodes, subscriptions, workloads], dataSource, transactions, options);
  },
};

/** Regions, nodes and GPUs, pools, subscriptions and workloads. */
@Module({
  imports: [TeamDirectoryModule.forRoot({ service: 'gpuaas' })],
  controllers: [
    ConnectionsController,
    HoldingsController,
    NodesController,
    PoolsController,
    RegionsController,
    SubscriptionsController,
    WorkloadsController,
  ],
  providers: [
    ConnectionRefresh,
    ConnectionsService,
    Entitlements,
    GpuMachine,
    HoldingsService,
    KnownPrices,
    NodeMachine,
    NodeReader,
    NodesService,
    Placement,
    PoolCatalogue,
    PoolsService,
    PriceSnapshot,
    RegionsService,
    SimulatedFaults,
    SubscriptionListing,
    SubscriptionMachine,
    SubscriptionsService,
    TeamCapacity,
    TeamDeletion,
    TeamEnding,
    TeamGate,
    UsageFacts,
    WorkloadMachine,
    WorkloadsService,
    workers,
    { provide: ConnectionSource, useClass: NoPods },
    { provide: MetricsSource, useFactory: metricsSource, inject: [GpuaasSettings] },
    { provide: NodeDriver, useClass: SimulatedNodes },
  ],
})
export class GpuaasModule {}
