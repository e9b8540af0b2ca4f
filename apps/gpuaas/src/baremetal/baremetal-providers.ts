import { Transactions } from '@atoll/database';
import { MachineWorkers } from '@atoll/state-machine';
import type { Provider } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { GpuaasSettings } from '../gpuaas-settings.js';
import { BaremetalInstancesController } from './instances/baremetal-instance.controller.js';
import { BaremetalInstancesService } from './instances/baremetal-instance.service.js';
import { BaremetalInstanceEvents } from './instances/baremetal-instance-events.js';
import { BaremetalInstanceSteps } from './instances/baremetal-instance-steps.js';
import { BaremetalNodesController } from './nodes/baremetal-node.controller.js';
import { BaremetalNodesService } from './nodes/baremetal-node.service.js';
import { BaremetalNodeSteps } from './nodes/baremetal-node-steps.js';
import { BaremetalInstanceReader } from './instances/baremetal-instance-reader.js';
import { BaremetalNodeReader } from './nodes/baremetal-node-reader.js';
import { BaremetalSecrets } from './hosts/baremetal-secrets.js';
import { Fences } from './hosts/fences.js';
import { HostAccess } from './hosts/host-access.js';
import { KeyChanges } from './keys/key-changes.js';
import { Ledger } from './hosts/ledger.js';
import { OldCredentialReads } from './instances/old-credential-reads.js';
import { ReinstallHook } from './nodes/reinstall-hook.js';
import { ReinstallCallbacks } from './nodes/reinstall-callbacks.js';
import { SimulatedHosts } from './hosts/simulated-hosts.js';
import { TeamKeys } from './keys/team-keys.js';

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
