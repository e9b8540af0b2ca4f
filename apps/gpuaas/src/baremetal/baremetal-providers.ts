import { Transactions } from '@atoll/database';
import { MachineWorkers } from '@atoll/state-machine';
import type { Provider } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { GpuaasSettings } from '../gpuaas-settings.js';
import { BaremetalInstancesController } from './baremetal-instance.controller.js';
import { BaremetalInstancesService } from './baremetal-instance.service.js';
import { BaremetalEnding } from './baremetal-ending.js';
import { BaremetalInstanceEvents } from './baremetal-instance-events.js';
import { BaremetalInstanceSteps } from './baremetal-instance-steps.js';
import { BaremetalNodesController } from './baremetal-node.controller.js';
import { BaremetalNodesService } from './baremetal-node.service.js';
import { BaremetalNodeSteps } from './baremetal-node-steps.js';
import { BaremetalInstanceReader } from './baremetal-instance-reader.js';
import { BaremetalNodeReader } from './baremetal-node-reader.js';
import { BaremetalSecrets } from './baremetal-secrets.js';
import { Fences } from './fences.js';
import { HostAccess } from './host-access.js';
import { KeyChanges } from './key-changes.js';
import { Ledger } from './ledger.js';
import { OldCredentialReads } from './old-credential-reads.js';
import { ReinstallHook } from './reinstall-hook.js';
import { ReinstallCallbacks } from './reinstall-callbacks.js';
import { SimulatedHosts } from './simulated-hosts.js';
import { TeamKeys } from './team-keys.js';

/** Workers of their own: a step on a host takes longer than one on a GPU. */
export class BaremetalWorkers extends MachineWorkers {}

const workers: Provider = {
  provide: BaremetalWorkers,
  inject: [BaremetalNodeSteps, BaremetalInstanceSteps, DataSource, Transactions, GpuaasSettings],
  useFactory: (
    nodes: BaremetalNodeSteps,
    instances: BaremetalInstanceSteps,
    dataSource: DataSource,
    transactions: Transactions,
    { hostStepMs, workers: given }: GpuaasSettings,
  ) =>
    new BaremetalWorkers([nodes, instances], dataSource, transactions, {
      service: 'gpuaas',
      stepMs: hostStepMs,
      laneConcurrency: 1,
      ...given,
    }),
};

export const baremetalControllers = [BaremetalInstancesController, BaremetalNodesController];

export const baremetalProviders: Provider[] = [
  BaremetalEnding,
  BaremetalInstanceEvents,
  BaremetalInstanceSteps,
  BaremetalNodesService,
  BaremetalNodeSteps,
  BaremetalInstanceReader,
  BaremetalNodeReader,
  BaremetalSecrets,
  BaremetalInstancesService,
  Fences,
  HostAccess,
  Ledger,
  OldCredentialReads,
  ReinstallHook,
  ReinstallCallbacks,
  SimulatedHosts,
  KeyChanges,
  TeamKeys,
  workers,
];
