import type { PodMount } from '@atoll/contracts/pods';
import { MachineIndexes, MachineRow, type MachineError } from '@atoll/state-machine';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

const instant = { type: 'timestamp with time zone', precision: 3 } as const;

@Entity('vm')
@Index(['teamId', 'createdAt', 'instanceId'])
@Index('vm_name', { synchronize: false })
@Index('vm_running_of_cluster', { synchronize: false })
@MachineIndexes('vm')
export class VmEntity extends MachineRow {
  @PrimaryColumn('uuid')
  instanceId!: string;

  /** Unique in the team among those that are not deleted. */
  @Column('text')
  name!: string;

  @Column('uuid')
  teamId!: string;

  @Column('uuid')
  workspaceId!: string;

  @Column('bigint')
  regionId!: string;

  @Column('text')
  regionName!: string;

  /** Whose cluster runs it: the lane of its steps. */
  @Column('bigint')
  gpuaasId!: string;

  @Column('text')
  flavour!: string;

  @Column('integer')
  vcpus!: number;

  /** 10^9 bytes. */
  @Column('numeric', { precision: 9, scale: 2 })
  memoryGb!: string;

  /** As it was requested. */
  @Column('text')
  image!: string;

  /** The image that the present run has, normalised. */
  @Column('text')
  reference!: string;

  @Column('jsonb')
  volumes!: PodMount[];

  @Column('boolean')
  autoRestart!: boolean;

  /** Counts runs, over all starts. */
  @Column('integer', { default: 1 })
  run!: number;

  /** Runs after the first of the present start. */
  @Column('integer', { default: 0 })
  restarts!: number;

  /** Runs that ended by themselves, one after the other: what the back-off grows with. */
  @Column('integer', { default: 0 })
  failures!: number;

  /** When the next run may begin, while `restarting`. */
  @Column({ ...instant, nullable: true })
  nextRunAt!: Date | null;

  /** Why it stopped or failed, or starts anew, for its team. */
  @Column('text', { nullable: true })
  endReason!: string | null;

  /**
   * Why it failed; written when it begins to fail, and not by what goes wrong while it ends. Counts only while it is
   * `failing` or `failed`.
   */
  @Column('jsonb', { nullable: true })
  failure!: MachineError | null;

  /** When the present or last run began. */
  @Column({ ...instant, nullable: true })
  startedAt!: Date | null;

  /** When the last run ended by itself, as the cluster says; null while it runs, and where it was ended. */
  @Column({ ...instant, nullable: true })
  endedAt!: Date | null;

  /** The SSH keys that its present run was told, a line each. */
  @Column('text', { default: '' })
  placedKeys!: string;

  /** Whether billing was told that it runs. */
  @Column('boolean', { default: false })
  isBilled!: boolean;

  /** Counts what other services were told of it. */
  @Column('integer', { default: 0 })
  told!: number;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  createdAt!: Date;
}
