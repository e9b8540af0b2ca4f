import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** The last start of a pod that is over: a request for a workload of it, or of an earlier one, comes too late. */
@Entity('pod_end')
@Index('pod_end_of_team', ['teamId', 'endedAt'], { where: 'team_id IS NOT NULL' })
export class PodEndEntity {
  @PrimaryColumn('uuid')
  podId!: string;

  @Column('integer')
  endedStart!: number;

  /** null until a workload of the pod is ended. */
  @Column('uuid', { nullable: true })
  teamId!: string | null;

  /** When the pods service last ended a workload of the pod. */
  @Column({ ...instant, nullable: true })
  endedAt!: Date | null;
}
