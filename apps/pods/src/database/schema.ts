import { eventEntities } from '@atoll/events';
import { MachineHistory } from '@atoll/state-machine';
import { TeamClosingEntity, teamDirectoryEntities, WorkspaceClosingEntity } from '@atoll/team-directory';
import { PodEntity } from '../pods/pod.entity.js';
import { PodRunEntity } from '../pods/pod-run.entity.js';
import { Pods1807000000000 } from './migrations/1807000000000-pods.js';

/** The PostgreSQL schema that the pods service owns. */
export const podsSchema = {
  entities: [
    ...eventEntities,
    ...teamDirectoryEntities,
    MachineHistory,
    PodEntity,
    PodRunEntity,
    TeamClosingEntity,
    WorkspaceClosingEntity,
  ],
  migrations: [Pods1807000000000],
};
