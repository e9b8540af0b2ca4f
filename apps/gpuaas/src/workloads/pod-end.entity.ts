import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The last start of a pod that is over: a request for a workload of it, or of an earlier one, comes too late. */
@Entity('pod_end')
export class PodEndEntity {
  @PrimaryColumn('uuid')
  podId!: string;

  @Column('integer')
  endedStart!: number;
}
