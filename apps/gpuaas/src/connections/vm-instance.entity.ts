import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A VM as published by the pods service: one of the instances that may attach to a GPU service. */
@Entity('vm_instance')
@Index('vm_instance_running', { synchronize: false })
export class VmInstanceEntity {
  @PrimaryColumn('uuid')
  instanceId!: string;

  /** Events may come twice and in any order: the greatest holds. */
  @Column('bigint')
  revision!: string;

  @Column('uuid')
  teamId!: string;

  @Column('text')
  name!: string;

  @Column('boolean')
  isRunning!: boolean;

  @Column(instant)
  createdAt!: Date;
}
