import { DatabaseModule, Transactions } from '@atoll/database';
import { EventsModule, type Courier } from '@atoll/events';
import { MachineWorkers, type WorkerOptions } from '@atoll/state-machine';
import { TeamDirectoryModule } from '@atoll/team-directory';
import { Module, type DynamicModule, type Provider } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { TeamCapacity } from './capacity/team-capacity.js';
import { ConnectionsController } from './connections/connection.controller.js';
import { ConnectionRefresh } from './connections/connection-refresh.js';
import { ConnectionsService } from './connections/connection.service.js';
import { ConnectionSource, NoPods } from './connections/connection-source.js';
import { gpuaasSchema } from './database/schema.js';
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
import { TeamDeletion } from './teams/team-deletion.js';
import { TeamGate } from './teams/team-gate.js';
import { UsageFacts } from './usage/usage-facts.js';
import { WorkloadsController } from './workloads/workload.controller.js';
import { WorkloadMachine } from './workloads/workload-machine.js';
import { WorkloadsService } from './workloads/workload.service.js';

export interface GpuaasOptions {
  databaseUrl: string;
  /** 20 unless given: requests and workers. */
  poolSize?: number;
  /** Gives the application its `Rpc`. */
  rpc: DynamicModule;
  courier: Courier;
  /** Where metrics are read; simulated unless given. */
  prometheusUrl?: string;
  /** 30 s unless given. */
  returnRetryMs?: number;
  /** 30 s unless given. */
  initRetryMs?: number;
  /** 150 ms unless given: long enough to be seen. */
  simulatedSwitchMs?: number;
  /** For specs: what stands in for nodes, metrics and pods, and how machines are worked. */
  driver?: NodeDriver;
  metrics?: MetricsSource;
  connections?: ConnectionSource;
  workers?: Partial<WorkerOptions> & { isIdle?: boolean };
}

const workers = (options: GpuaasOptions): Provider => ({
  provide: MachineWorkers,
  inject: [GpuMachine, NodeMachine, SubscriptionMachine, WorkloadMachine, DataSource, Transactions],
  useFactory: (
    gpus: GpuMachine,
    nodes: NodeMachine,
    subscriptions: SubscriptionMachine,
    workloads: WorkloadMachine,
    dataSource: DataSource,
    transactions: Transactions,
  ) => new MachineWorkers([gpus, nodes, subscriptions, workloads], dataSource, transactions, { service: 'gpuaas', ...options.workers }),
});

/** Regions, nodes and GPUs, pools, subscriptions and workloads. */
@Module({
  controllers: [ConnectionsController, NodesController, PoolsController, RegionsController, SubscriptionsController, WorkloadsController],
  providers: [
    ConnectionRefresh,
    ConnectionsService,
    Entitlements,
    GpuMachine,
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
    TeamGate,
    UsageFacts,
    WorkloadMachine,
    WorkloadsService,
  ],
})
export class GpuaasModule {
  static register(options: GpuaasOptions): DynamicModule {
    const { databaseUrl: url, poolSize = 20, rpc, courier, prometheusUrl } = options;
    const { returnRetryMs = 30_000, initRetryMs = 30_000, simulatedSwitchMs = 150 } = options;
    const settings: GpuaasSettings = { returnRetryMs, initRetryMs, simulatedSwitchMs };
    return {
      module: GpuaasModule,
      imports: [
        DatabaseModule.forRoot({ ...gpuaasSchema, url, poolSize }),
        EventsModule.forRoot({ service: 'gpuaas', courier }),
        TeamDirectoryModule.forRoot({ service: 'gpuaas' }),
        rpc,
      ],
      providers: [
        { provide: GpuaasSettings, useValue: settings },
        options.driver ? { provide: NodeDriver, useValue: options.driver } : { provide: NodeDriver, useClass: SimulatedNodes },
        { provide: MetricsSource, useValue: options.metrics ?? metricsSource({ ...(prometheusUrl !== undefined && { prometheusUrl }) }) },
        options.connections
          ? { provide: ConnectionSource, useValue: options.connections }
          : { provide: ConnectionSource, useClass: NoPods },
        workers(options),
      ],
    };
  }
}
