import type { PodLimits } from '@atoll/contracts/pods';
import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The limits that the operator, or a team, has set for pods. */
@Entity('pod_limit')
export class PodLimitEntity {
  /** `all`: the operator's; otherwise the id of a team. */
  @PrimaryColumn('text')
  scope!: string;

  @Column('jsonb')
  limits!: PodLimits;
}
