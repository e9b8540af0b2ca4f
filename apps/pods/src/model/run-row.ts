import { instant } from '@atoll/database';
import { Column } from 'typeorm';
import { FailingRow } from './failing-row.js';

/** What the rows of pods and of VMs have in common: whose they are, where they run, and how their runs went. */
export abstract class RunRow extends FailingRow {
  @Column('uuid')
  teamId!: string;

  @Column('uuid')
  workspaceId!: string;

  /** Whose cluster runs it: the lane of its steps. */
  @Column('bigint')
  gpuaasId!: string;

  @Column('bigint')
  regionId!: string;

  /** As it was requested. */
  @Column('text')
  image!: string;

  /** Runs after the first of the present start. */
  @Column('integer', { default: 0 })
  restarts!: number;

  /** Runs that ended by themselves, one after the other: what the back-off grows with. */
  @Column('integer', { default: 0 })
  failures!: number;

  /** When the next run may begin, while `restarting`. */
  @Column({ ...instant, nullable: true })
  nextRunAt!: Date | null;

  /** Why it stopped or failed, or runs anew, for its team. */
  @Column('text', { nullable: true })
  endReason!: string | null;

  /** When the present or last run began. */
  @Column({ ...instant, nullable: true })
  startedAt!: Date | null;

  /** When the last run ended by itself, as the cluster says; null while it runs, and where it was ended. */
  @Column({ ...instant, nullable: true })
  endedAt!: Date | null;

  /** Whether billing was told that it runs. */
  @Column('boolean', { default: false })
  isBilled!: boolean;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  createdAt!: Date;
}
