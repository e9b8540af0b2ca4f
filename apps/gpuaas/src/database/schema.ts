import { VmInstanceEntity } from '../connections/vm-instance.entity.js';
import { VmInstances1830000000000 } from './migrations/1830000000000-vm-instances.js';
import { eventEntities } from '@atoll/events';
import { MachineHistory } from '@atoll/state-machine';
import {
  MemberRoleEntity,
  TeamClosingEntity,
  teamDirectoryEntities,
  WorkspaceClosingEntity,
} from '@atoll/team-directory';
import { BaremetalInstanceEntity } from '../model/baremetal-instance.entity.js';
import { BaremetalNodeEntity } from '../model/baremetal-node.entity.js';
import { BaremetalAttemptEntity } from '../baremetal/hosts/attempt.entity.js';
import { CredentialReadEntity } from '../baremetal/instances/credential-read.entity.js';
import { SimulatedHostEntity } from '../baremetal/hosts/simulated-host.entity.js';
import { UserSshKeysEntity } from '../baremetal/keys/team-keys.entity.js';
import { CapacityChangeEntity, TeamCapacityEntity } from '../capacity/capacity.entity.js';
import { ClusterEntity } from '../model/cluster.entity.js';
import { ConnectionEntity, ConnectionRefreshEntity } from '../connections/connection.entity.js';
import { SimulatedDeviceEntity, SimulatedFaultEntity } from '../driver/simulated.entity.js';
import { GpuEntity } from '../model/gpu.entity.js';
import { LeaseEntity } from '../model/lease.entity.js';
import { WaitingRequestEntity } from '../model/waiting-request.entity.js';
import { NodeTroubleEntity } from '../model/node-trouble.entity.js';
import { NodeEntity } from '../model/node.entity.js';
import { PoolEntity } from '../model/pool.entity.js';
import { KnownPriceEntity, PriceSnapshotEntity } from '../prices/known-price.entity.js';
import { HeldSliceEntity } from '../metrics/held-slice.entity.js';
import { GpuaasEntity, RegionEntity } from '../model/region.entity.js';
import { ServiceStartEntity } from '../subscriptions/service-start.entity.js';
import { SubscriptionEntity } from '../model/subscription.entity.js';
import { PodEndEntity } from '../workloads/pod-end.entity.js';
import { WorkloadEntity } from '../model/workload.entity.js';
import { Gpuaas1790000000000 } from './migrations/1790000000000-gpuaas.js';
import { WorkspaceClosing1796000000000 } from './migrations/1796000000000-workspace-closing.js';
import { ClosingAttempts1797000000000 } from './migrations/1797000000000-closing-attempts.js';
import { LiveRows1800000000000 } from './migrations/1800000000000-live-rows.js';
import { WorkspaceRevisions1801000000000 } from './migrations/1801000000000-workspace-revisions.js';
import { CallNonces1805000000000 } from './migrations/1805000000000-call-nonces.js';
import { Lanes1806000000000 } from './migrations/1806000000000-lanes.js';
import { PriceDirectorySnapshot1806500000000 } from './migrations/1806500000000-price-directory-snapshot.js';
import { PodWorkloads1807000000000 } from './migrations/1807000000000-pod-workloads.js';
import { Baremetal1820000000000 } from './migrations/1820000000000-baremetal.js';
import { Failures1807500000000 } from './migrations/1807500000000-failures.js';
import { WaitingRequests1808000000000 } from './migrations/1808000000000-waiting-requests.js';
import { HeldSlices1809000000000 } from './migrations/1809000000000-held-slices.js';
import { TeamKeys1821000000000 } from './migrations/1821000000000-team-keys.js';
import { Clusters1823000000000 } from './migrations/1823000000000-clusters.js';
import { FailedRows1871000000000 } from './migrations/1871000000000-failed-rows.js';
import { GpuModes1875000000000 } from './migrations/1875000000000-gpu-modes.js';
import { HostsWithoutGpus1873000000000 } from './migrations/1873000000000-hosts-without-gpus.js';
import { BaremetalIndexes1875000000000 } from './migrations/1875000000000-baremetal-indexes.js';
import { MachineIds1877000000000 } from './migrations/1877000000000-machine-ids.js';
import { UncleanedHosts1878000000000 } from './migrations/1878000000000-uncleaned-hosts.js';
import { ParkedRetried1882000000000 } from './migrations/1882000000000-parked-retried.js';
import { DrainingSubscriptions1879000000000 } from './migrations/1879000000000-draining-subscriptions.js';
import { Portions1883000000000 } from './migrations/1883000000000-portions.js';
import { NodeTenants1884000000000 } from './migrations/1884000000000-node-tenants.js';
import { PriceCurrency1885000000000 } from './migrations/1885000000000-price-currency.js';
import { FailedTeam1886000000000 } from './migrations/1886000000000-failed-team.js';
import { PodEndsOfTeams1887000000000 } from './migrations/1887000000000-pod-ends-of-teams.js';
import { ClusterLooks1888000000000 } from './migrations/1888000000000-cluster-looks.js';
import { NodeTroubles1890000000000 } from './migrations/1890000000000-node-troubles.js';
import { RowsAtRest1889000000000 } from './migrations/1889000000000-rows-at-rest.js';
import { HeldSlicesOfSubscriptions1890000001000 } from './migrations/1890000001000-held-slices-of-subscriptions.js';
import { KeysWithoutFactors1892000000000 } from './migrations/1892000000000-keys-without-factors.js';
import { KeysOfEndedHosts1892000001000 } from './migrations/1892000001000-keys-of-ended-hosts.js';
import { LiveHosts1893000000000 } from './migrations/1893000000000-live-hosts.js';
import { RequestersOfWaiting1894000000000 } from './migrations/1894000000000-requesters-of-waiting.js';
import { MissedChecks1872000000000 } from './migrations/1872000000000-missed-checks.js';

/** The PostgreSQL schema that the gpuaas service owns. */
export const gpuaasSchema = {
  entities: [
    ...eventEntities,
    ...teamDirectoryEntities,
    BaremetalAttemptEntity,
    BaremetalInstanceEntity,
    BaremetalNodeEntity,
    CapacityChangeEntity,
    ClusterEntity,
    ConnectionEntity,
    ConnectionRefreshEntity,
    CredentialReadEntity,
    GpuEntity,
    GpuaasEntity,
    HeldSliceEntity,
    KnownPriceEntity,
    LeaseEntity,
    MachineHistory,
    MemberRoleEntity,
    NodeEntity,
    NodeTroubleEntity,
    PodEndEntity,
    PoolEntity,
    PriceSnapshotEntity,
    RegionEntity,
    ServiceStartEntity,
    SimulatedDeviceEntity,
    SimulatedFaultEntity,
    SimulatedHostEntity,
    SubscriptionEntity,
    TeamCapacityEntity,
    TeamClosingEntity,
    UserSshKeysEntity,
    WorkspaceClosingEntity,
    WaitingRequestEntity,
    VmInstanceEntity,
    WorkloadEntity,
  ],
  migrations: [
    Gpuaas1790000000000,
    WorkspaceClosing1796000000000,
    ClosingAttempts1797000000000,
    LiveRows1800000000000,
    WorkspaceRevisions1801000000000,
    CallNonces1805000000000,
    Lanes1806000000000,
    PriceDirectorySnapshot1806500000000,
    PodWorkloads1807000000000,
    Baremetal1820000000000,
    Failures1807500000000,
    WaitingRequests1808000000000,
    HeldSlices1809000000000,
    TeamKeys1821000000000,
    Clusters1823000000000,
    VmInstances1830000000000,
    FailedRows1871000000000,
    MissedChecks1872000000000,
    HostsWithoutGpus1873000000000,
    GpuModes1875000000000,
    BaremetalIndexes1875000000000,
    MachineIds1877000000000,
    UncleanedHosts1878000000000,
    DrainingSubscriptions1879000000000,
    ParkedRetried1882000000000,
    Portions1883000000000,
    NodeTenants1884000000000,
    PriceCurrency1885000000000,
    FailedTeam1886000000000,
    PodEndsOfTeams1887000000000,
    ClusterLooks1888000000000,
    RowsAtRest1889000000000,
    NodeTroubles1890000000000,
    HeldSlicesOfSubscriptions1890000001000,
    KeysWithoutFactors1892000000000,
    KeysOfEndedHosts1892000001000,
    LiveHosts1893000000000,
    RequestersOfWaiting1894000000000,
  ],
};
