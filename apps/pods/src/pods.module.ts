import { Transactions } from '@atoll/database';
import { MachineDeskModule, MachineWorkers } from '@atoll/state-machine';
import { WholeListings } from '@atoll/rpc';
import { ExpiredClosings, TeamDirectoryModule } from '@atoll/team-directory';
import { Module, type Provider } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { DatabaseClock } from './clock/database-clock.js';
import { DeletedExposures } from './exposures/deleted-exposures.js';
import { CertificateRenewal } from './exposures/certificate-renewal.js';
import { Certificates } from './certificates/certificates.js';
import { ClusterWatch } from './watch/cluster-watch.js';
import { ClusterRows } from './cluster/cluster-rows.js';
import { Clusters } from './cluster/clusters.js';
import { Orphans } from './cluster/orphans.js';
import { ConnectionsController } from './connections/connection.controller.js';
import { ConnectionsService } from './connections/connection.service.js';
import { BatchesController } from './batches/batch.controller.js';
import { ExposuresOfTeam } from './exposures/exposures-of-team.js';
import { ExposuresController } from './exposures/exposure.controller.js';
import { ExposureSteps } from './doors/exposure-steps.js';
import { ExposuresService } from './exposures/exposure.service.js';
import { ExternalPorts } from './doors/ports.js';
import { BaremetalInstances } from './instances/baremetal-instances.js';
import { InstancesController } from './instances/instance.controller.js';
import { InstancesOfTeams } from './instances/instances-of-teams.js';
import { InstancesService } from './instances/instance.service.js';
import { IdleWatch } from './watch/idle-watch.js';
import { PodDeadlines } from './limits/pod-deadlines.js';
import { PodLimitsController } from './limits/pod-limit.controller.js';
import { AllowedImages } from './images/allowed-images.js';
import { PodLimitsService } from './limits/pod-limit.service.js';
import { LogClaims } from './logs/log-claims.js';
import { LogCollector } from './logs/log-collector.js';
import { LogsController } from './logs/log.controller.js';
import { LogsService } from './logs/log.service.js';
import { LogVolume } from './logs/log-volume.js';
import { LogWriter } from './logs/log-writer.js';
import { OldLogSources } from './logs/old-log-sources.js';
import { SearchBounds } from './logs/search-bounds.js';
import { logStore } from './logs/store-in-use.js';
import { GpuServices } from './cluster/gpu-services.js';
import { GivenUpEnds } from './pods/given-up-ends.js';
import { PodsController } from './pods/pod.controller.js';
import { PodActions } from './pods/pod-actions.js';
import { PodSteps } from './pods/pod-steps.js';
import { PodNames } from './pods/pod-names.js';
import { PodReader } from './pods/pod-reader.js';
import { PodStarts } from './pods/pod-start.js';
import { PodsOfSubscriptions } from './pods/pods-of-subscriptions.js';
import { PodWorkloadEvents } from './pods/pod-workload-events.js';
import { PodsService } from './pods/pod.service.js';
import { RunCollector } from './pods/run-collector.js';
import { PodsSettings } from './pods-settings.js';
import { sealer } from './sealer.js';
import { AdmissionControl, LogInTrail } from './log-ins/admission-control.js';
import { OldLogIns } from './log-ins/old-log-ins.js';
import { OpenConnections } from './log-ins/open-connections.js';
import { KeptLogIns } from './log-ins/kept-log-ins.js';
import { PodAdmissionControl } from './log-ins/pod-admission-control.js';
import { SshHostKey } from './ssh-door/ssh-host-key.js';
import { SshServer } from './ssh-door/ssh-server.js';
import { SshKeysController } from './ssh-keys/ssh-key.controller.js';
import { SshKeysService } from './ssh-keys/ssh-key.service.js';
import { HoldingsController } from './teams/holdings.controller.js';
import { HoldingsService } from './teams/holdings.service.js';
import { TeamDeletion } from './teams/team-deletion.js';
import { TerminalsController } from './terminals/terminal.controller.js';
import { TerminalsService } from './terminals/terminal.service.js';
import { FlavoursService } from './vms/flavour.service.js';
import { VmsController } from './vms/vm.controller.js';
import { VmsService } from './vms/vm.service.js';
import { LateEnds } from './usage/late-ends.js';
import { VmKeys } from './vms/vm-keys.js';
import { VmSteps } from './vms/vm-steps.js';
import { VmWatch } from './vms/vm-watch.js';
import { MountableVolumes } from './volumes/mountable-volumes.js';
import { VolumesController } from './volumes/volume.controller.js';
import { VolumesService } from './volumes/volume.service.js';
import { VolumesOfTeam } from './volumes/volumes-of-team.js';
import { VolumeSteps } from './volumes/volume-steps.js';
import { VolumeWatch } from './volumes/volume-watch.js';

const workers: Provider = {
  provide: MachineWorkers,
  inject: [PodSteps, ExposureSteps, VolumeSteps, VmSteps, DataSource, Transactions, PodsSettings],
  useFactory: (
    pods: PodSteps,
    exposures: ExposureSteps,
    volumes: VolumeSteps,
    vms: VmSteps,
    dataSource: DataSource,
    transactions: Transactions,
    settings: PodsSettings,
  ) =>
    new MachineWorkers([pods, exposures, volumes, vms], dataSource, transactions, {
      service: 'pods',
      concurrency: settings.steps,
      laneConcurrency: settings.stepsPerCluster,
      historyDays: settings.historyRetentionDays,
      ...settings.workers,
    }),
};

/** Pods, and what they are reached by. */
@Module({
  imports: [MachineDeskModule.forRoot({ service: 'pods' }), TeamDirectoryModule.forRoot({ service: 'pods' })],
  controllers: [
    ConnectionsController,
    BatchesController,
    ExposuresController,
    HoldingsController,
    InstancesController,
    LogsController,
    PodLimitsController,
    PodsController,
    SshKeysController,
    VmsController,
    TerminalsController,
    VolumesController,
  ],
  providers: [
    AllowedImages,
    BaremetalInstances,
    CertificateRenewal,
    DeletedExposures,
    Certificates,
    ClusterWatch,
    ConnectionsService,
    DatabaseClock,
    GpuServices,
    HoldingsService,
    InstancesOfTeams,
    InstancesService,
    ExpiredClosings,
    ExposureSteps,
    ExposuresOfTeam,
    PodsOfSubscriptions,
    VolumesOfTeam,
    ExposuresService,
    ExternalPorts,
    GivenUpEnds,
    OpenConnections,
    LogClaims,
    LogCollector,
    LogVolume,
    LogWriter,
    LogsService,
    MountableVolumes,
    OldLogIns,
    OldLogSources,
    Orphans,
    IdleWatch,
    LateEnds,
    PodActions,
    PodDeadlines,
    PodLimitsService,
    PodNames,
    PodSteps,
    PodReader,
    PodStarts,
    PodWorkloadEvents,
    PodsService,
    RunCollector,
    SshHostKey,
    SshKeysService,
    SshServer,
    SearchBounds,
    TeamDeletion,
    TerminalsService,
    FlavoursService,
    VmKeys,
    VmSteps,
    VmWatch,
    VmsService,
    VolumeSteps,
    VolumeWatch,
    VolumesService,
    WholeListings,
    logStore,
    sealer,
    workers,
    Clusters,
    ClusterRows,
    { provide: AdmissionControl, useClass: PodAdmissionControl },
    { provide: LogInTrail, useClass: KeptLogIns },
  ],
})
export class PodsModule {}
