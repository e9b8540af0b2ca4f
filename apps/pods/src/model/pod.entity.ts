import type { LeasedSlice } from '@atoll/contracts/gpuaas';
import type { IdleStop, PodMount, RestartPolicy } from '@atoll/contracts/pods';
import { instant } from '@atoll/database';
import type { KeptIdleness } from './idleness.js';
import { MachineIndexes } from '@atoll/state-machine';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { RunRow } from './run-row.js';

@Entity('pod')
@Index('pod_of_team', ['teamId', 'createdAt', 'podId'])
@Index('pod_kept_of_team', { synchronize: false })
@Index('pod_live_of_team', { synchronize: false })
@Index('pod_live_of_cluster', { synchronize: false })
@Index('pod_holding', { synchronize: false })
@Index('pod_idle_stop', { synchronize: false })
@MachineIndexes('pod')
export class PodEntity extends RunRow {
  @PrimaryColumn('uuid')
  podId!: string;

  @Column('text', { unique: true })
  podName!: string;

  @Column('text')
  name!: string;

  @Index()
  @Column('bigint')
  subscriptionId!: string;

  @Column('text', { default: '' })
  regionName!: string;

  @Column('text')
  profile!: string;

  /** The image that the present run has, normalised; null before the first. */
  @Column('text', { nullable: true })
  reference!: string | null;

  @Column('integer')
  vgpus!: number;

  /** Cores. */
  @Column('numeric', { precision: 9, scale: 2, nullable: true })
  cpu!: string | null;

  /** 10^9 bytes. */
  @Column('numeric', { precision: 9, scale: 2, nullable: true })
  memoryGb!: string | null;

  @Column('jsonb')
  command!: string[];

  /** Sealed JSON, for `envPurpose`; null for none. */
  @Column('text', { nullable: true })
  sealedEnv!: string | null;

  @Column('jsonb')
  ports!: number[];

  @Column('jsonb')
  volumes!: PodMount[];

  /** What the present or last run has of `volumes`, which may have been changed since. */
  @Column('jsonb', { default: [] })
  mounted!: PodMount[];

  @Column('text')
  restart!: RestartPolicy;

  @Column('integer', { nullable: true })
  maxDurationMinutes!: number | null;

  @Column('jsonb', { nullable: true })
  idleStop!: IdleStop | null;

  /**
   * Who asked for its present start, as `personOf`: while it waits for a GPU, it counts for them. null: the operator.
   * A replica of the release before this column leaves null, or who asked for the start before.
   */
  @Column('text', { nullable: true })
  requestedBy!: string | null;

  /** Counts starts: each has a workload. */
  @Column('integer')
  start!: number;

  /** Counts runs, over all starts; 0 before the first. */
  @Column('integer', { default: 0 })
  run!: number;

  /** What the workload of the present start holds. */
  @Column('jsonb', { default: [] })
  slices!: LeasedSlice[];

  /** Of its last run that ended. */
  @Column('integer', { nullable: true })
  exitCode!: number | null;

  /** When the present start has lasted as long as it may. */
  @Column({ ...instant, nullable: true })
  stopsAt!: Date | null;

  /** Whether its log says that its longest duration ends soon. */
  @Column('boolean', { default: false })
  isStopWarned!: boolean;

  /** How long the present start has not used its GPU; null before the first look. */
  @Column('jsonb', { nullable: true })
  idleness!: KeptIdleness | null;
}

/** For libs/seal: where the environment of a pod belongs. */
export function envPurpose(podId: string): string {
  return `pods.pod.env:${podId}`;
}
