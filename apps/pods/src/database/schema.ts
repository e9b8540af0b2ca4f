import { eventEntities } from '@atoll/events';
import { MachineHistory } from '@atoll/state-machine';
import {
  MemberRoleEntity,
  TeamClosingEntity,
  teamDirectoryEntities,
  WorkspaceClosingEntity,
} from '@atoll/team-directory';
import { BaremetalInstanceEntity } from '../model/baremetal-instance.entity.js';
import { CertificateEntity } from '../model/certificate.entity.js';
import { ExposureEntity, ReservedPortEntity } from '../model/exposure.entity.js';
import { ClusterEntity, InstallationEntity } from '../model/cluster.entity.js';
import {
  LogReaderEntity,
  LogScopeEntity,
  LogSourceEntity,
  LogVolumeEntity,
  PlatformLineEntity,
} from '../model/log-source.entity.js';
import { GivenUpEndEntity } from '../model/given-up-end.entity.js';
import { OrphanEntity } from '../model/orphan.entity.js';
import { PodLimitEntity } from '../model/pod-limit.entity.js';
import { PodEntity } from '../model/pod.entity.js';
import { PodRunEntity } from '../model/pod-run.entity.js';
import { GpuServiceEntity } from '../model/gpu-service.entity.js';
import { SshHostKeyEntity } from '../model/ssh-host-key.entity.js';
import { SshLogInEntity } from '../model/ssh-log-in.entity.js';
import { SshKeyEntity, SshKeyOwnerEntity } from '../model/ssh-key.entity.js';
import { FlavourEntity } from '../model/flavour.entity.js';
import { VmEntity } from '../model/vm.entity.js';
import { VolumeEntity } from '../model/volume.entity.js';
import { PodLimits1830000001000 } from './migrations/1830000001000-pod-limits.js';
import { Vms1830000002000 } from './migrations/1830000002000-vms.js';
import { SharedVolumes1830000000000 } from './migrations/1830000000000-shared-volumes.js';
import { Pods1807000000000 } from './migrations/1807000000000-pods.js';
import { Exposures1808000000000 } from './migrations/1808000000000-exposures.js';
import { Engines1812000000000 } from './migrations/1812000000000-engines.js';
import { Ssh1811000000000 } from './migrations/1811000000000-ssh.js';
import { RegionNames1809000000000 } from './migrations/1809000000000-region-names.js';
import { BaremetalAndOwners1822000000000 } from './migrations/1822000000000-baremetal-and-owners.js';
import { Terminals1850000000000 } from './migrations/1850000000000-terminals.js';
import { LogInRetention1870000001000 } from './migrations/1870000001000-log-in-retention.js';
import { VmKeys1870000000000 } from './migrations/1870000000000-vm-keys.js';
import { FailedRows1871000000000 } from './migrations/1871000000000-failed-rows.js';
import { EndsOfRuns1874000000000 } from './migrations/1874000000000-ends-of-runs.js';
import { GivenUpTurns1879000000000 } from './migrations/1879000000000-given-up-turns.js';
import { RemovableRuns1882000001000 } from './migrations/1882000001000-removable-runs.js';
import { Failures1883000000000 } from './migrations/1883000000000-failures.js';
import { LateLogSources1884000000000 } from './migrations/1884000000000-late-log-sources.js';
import { RenamedExposures1890000000000 } from './migrations/1890000000000-renamed-exposures.js';
import { RolesWithFactors1892000001000 } from './migrations/1892000001000-roles-with-factors.js';
import { SshKeysWithoutFactors1892000000000 } from './migrations/1892000000000-ssh-keys-without-factors.js';
import { RowsThatStaySmall1892000002000 } from './migrations/1892000002000-rows-that-stay-small.js';
import { AddedKeys1892000003000 } from './migrations/1892000003000-added-keys.js';
import { LiveHosts1893000000000 } from './migrations/1893000000000-live-hosts.js';
import { OwnersOfExposures1894000000000 } from './migrations/1894000000000-owners-of-exposures.js';
import { RequestersOfPods1894000001000 } from './migrations/1894000001000-requesters-of-pods.js';
import { RowsAtRest1889000000000 } from './migrations/1889000000000-rows-at-rest.js';
import { ParkedRetried1882000000000 } from './migrations/1882000000000-parked-retried.js';
import { ClaimedRuns1881000000000 } from './migrations/1881000000000-claimed-runs.js';
import { GivenUpEnds1875000000000 } from './migrations/1875000000000-given-up-ends.js';
import { KeptPods1875000001000 } from './migrations/1875000001000-kept-pods.js';
import { EndedRows1876000001000 } from './migrations/1876000001000-ended-rows.js';
import { OpenLogIns1878000000000 } from './migrations/1878000000000-open-log-ins.js';
import { RetriedRuns1876000000000 } from './migrations/1876000000000-retried-runs.js';
import { HoldingPods1873000000000 } from './migrations/1873000000000-holding-pods.js';
import { PodLogs1811000000000 } from './migrations/1811000000000-pod-logs.js';
import { Clusters1823000000000 } from './migrations/1823000000000-clusters.js';
import { Orphans1823000001000 } from './migrations/1823000001000-orphans.js';

/** The PostgreSQL schema that the pods service owns. */
export const podsSchema = {
  entities: [
    ...eventEntities,
    ...teamDirectoryEntities,
    BaremetalInstanceEntity,
    CertificateEntity,
    ClusterEntity,
    ExposureEntity,
    FlavourEntity,
    GivenUpEndEntity,
    GpuServiceEntity,
    InstallationEntity,
    LogReaderEntity,
    LogScopeEntity,
    LogSourceEntity,
    LogVolumeEntity,
    MachineHistory,
    MemberRoleEntity,
    OrphanEntity,
    PlatformLineEntity,
    PodEntity,
    PodLimitEntity,
    PodRunEntity,
    ReservedPortEntity,
    SshHostKeyEntity,
    SshKeyEntity,
    SshKeyOwnerEntity,
    SshLogInEntity,
    TeamClosingEntity,
    VmEntity,
    VolumeEntity,
    WorkspaceClosingEntity,
  ],
  migrations: [
    Pods1807000000000,
    Exposures1808000000000,
    RegionNames1809000000000,
    PodLogs1811000000000,
    Ssh1811000000000,
    Engines1812000000000,
    BaremetalAndOwners1822000000000,
    Clusters1823000000000,
    Orphans1823000001000,
    SharedVolumes1830000000000,
    PodLimits1830000001000,
    Vms1830000002000,
    Terminals1850000000000,
    VmKeys1870000000000,
    LogInRetention1870000001000,
    FailedRows1871000000000,
    HoldingPods1873000000000,
    EndsOfRuns1874000000000,
    GivenUpEnds1875000000000,
    KeptPods1875000001000,
    RetriedRuns1876000000000,
    EndedRows1876000001000,
    OpenLogIns1878000000000,
    GivenUpTurns1879000000000,
    ClaimedRuns1881000000000,
    ParkedRetried1882000000000,
    RemovableRuns1882000001000,
    Failures1883000000000,
    LateLogSources1884000000000,
    RowsAtRest1889000000000,
    RenamedExposures1890000000000,
    SshKeysWithoutFactors1892000000000,
    RolesWithFactors1892000001000,
    RowsThatStaySmall1892000002000,
    AddedKeys1892000003000,
    LiveHosts1893000000000,
    OwnersOfExposures1894000000000,
    RequestersOfPods1894000001000,
  ],
};
