import { Transactions } from '@atoll/database';
import { MachineWorkers } from '@atoll/state-machine';
import { TeamDirectoryModule, TeamGate } from '@atoll/team-directory';
import { Module, type Provider } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { CertificateRenewal } from './certificates/certificate-renewal.js';
import { Certificates } from './certificates/certificates.js';
import { ClusterWatch } from './cluster/cluster-watch.js';
import { Clusters, SimulatedClusters } from './cluster/clusters.js';
import { ExposuresController } from './exposures/exposure.controller.js';
import { ExposureSteps } from './exposures/exposure-steps.js';
import { ExposuresService } from './exposures/exposure.service.js';
import { ExternalPorts } from './exposures/ports.js';
import { LogClaims } from './logs/log-claims.js';
import { LogCollector } from './logs/log-collector.js';
import { LogsController } from './logs/log.controller.js';
import { LogsService } from './logs/log.service.js';
import { LogVolume } from './logs/log-volume.js';
import { LogWriter } from './logs/log-writer.js';
import { PlatformLines } from './logs/platform-lines.js';
import { SearchBounds } from './logs/search-bounds.js';
import { logStore } from './logs/store-in-use.js';
import { PodsController } from './pods/pod.controller.js';
import { PodActions } from './pods/pod-actions.js';
import { PodSteps } from './pods/pod-steps.js';
import { PodReader } from './pods/pod-reader.js';
import { PodStarts } from './pods/pod-start.js';
import { PodWorkloadEvents } from './pods/pod-workload-events.js';
import { PodsService } from './pods/pod.service.js';
import { RunCollector } from './pods/run-collector.js';
import { PodsSettings } from './pods-settings.js';
import { sealer } from './sealer.js';
import { TeamDeletion } from './teams/team-deletion.js';
import { UsageFacts } from './usage/usage-facts.js';
import { MountableVolumes } from './volumes/mountable-volumes.js';

const workers: Provider = {
  provide: MachineWorkers,
  inject: [PodSteps, ExposureSteps, DataSource, Transactions, PodsSettings],
  useFactory: (pods: PodSteps, exposures: ExposureSteps, dataSource: DataSource, transactions: Transactions, settings: PodsSettings) =>
    new MachineWorkers([pods, exposures], dataSource, transactions, {
      service: 'pods',
      concurrency: settings.steps,
      laneConcurrency: settings.stepsPerCluster,
      ...settings.workers,
    }),
};

/** Pods, and what they are reached by. */
@Module({
  imports: [TeamDirectoryModule.forRoot({ service: 'pods' })],
  controllers: [ExposuresController, LogsController, PodsController],
  providers: [
    CertificateRenewal,
    Certificates,
    ClusterWatch,
    ExposureSteps,
    ExposuresService,
    ExternalPorts,
    LogClaims,
    LogCollector,
    LogVolume,
    LogWriter,
    LogsService,
    MountableVolumes,
    PlatformLines,
    PodActions,
    PodSteps,
    PodReader,
    PodStarts,
    PodWorkloadEvents,
    PodsService,
    RunCollector,
    SearchBounds,
    TeamDeletion,
    TeamGate,
    UsageFacts,
    logStore,
    sealer,
    workers,
    { provide: Clusters, useClass: SimulatedClusters },
  ],
})
export class PodsModule {}
