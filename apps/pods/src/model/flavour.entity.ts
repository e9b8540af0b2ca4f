import { instant } from '@atoll/database';
import { Column, Entity, PrimaryColumn } from 'typeorm';

@Entity('flavour')
export class FlavourEntity {
  @PrimaryColumn('text')
  name!: string;

  @Column('integer')
  vcpus!: number;

  /** 10^9 bytes. */
  @Column('numeric', { precision: 9, scale: 2 })
  memoryGb!: string;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  createdAt!: Date;
}
