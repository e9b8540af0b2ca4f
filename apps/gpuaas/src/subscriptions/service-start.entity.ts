import { instant } from '@atoll/database';
import { Check, Column, Entity, PrimaryColumn } from 'typeorm';

/** When a replica of this service last started; one row. */
@Entity('service_start')
@Check('service_start_is_only_check', 'is_only')
export class ServiceStartEntity {
  @PrimaryColumn('boolean', { default: true })
  isOnly!: boolean;

  @Column(instant)
  startedAt!: Date;
}
