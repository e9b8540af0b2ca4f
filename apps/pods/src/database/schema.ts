import { eventEntities } from '@atoll/events';
import { MachineHistory } from '@atoll/state-machine';
import { TeamClosingEntity, teamDirectoryEntities, WorkspaceClosingEntity } from '@atoll/team-directory';
import { CertificateEntity } from '../certificates/certificate.entity.js';
import { ExposureEntity, ReservedPortEntity } from '../exposures/exposure.entity.js';
import { LogReaderEntity, LogScopeEntity, LogSourceEntity, LogVolumeEntity, PlatformLineEntity } from '../logs/log-source.entity.js';
import { PodEntity } from '../pods/pod.entity.js';
import { PodRunEntity } from '../pods/pod-run.entity.js';
import { Pods1807000000000 } from './migrations/1807000000000-pods.js';
import { Exposures1808000000000 } from './migrations/1808000000000-exposures.js';
import { PodLogs1811000000000 } from './migrations/1811000000000-pod-logs.js';

/** The PostgreSQL schema that the pods service owns. */
export const podsSchema = {
  entities: [
    ...eventEntities,
    ...teamDirectoryEntities,
    CertificateEntity,
    ExposureEntity,
    LogReaderEntity,
    LogScopeEntity,
    LogSourceEntity,
    LogVolumeEntity,
    MachineHistory,
    PlatformLineEntity,
    PodEntity,
    PodRunEntity,
    ReservedPortEntity,
    TeamClosingEntity,
    WorkspaceClosingEntity,
  ],
  migrations: [Pods1807000000000, Exposures1808000000000, PodLogs1811000000000],
};
