import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A bare-metal instance as gpuaas tells it: for the listing of all instances. */
@Entity('baremetal_instance')
@Index('baremetal_instance_live_of_team', { synchronize: false })
@Index('baremetal_instance_of_team', { synchronize: false })
export class BaremetalInstanceEntity {
  @PrimaryColumn('uuid')
  instanceId!: string;

  /** Of what is shown: events may come twice and in any order. */
  @Column('bigint')
  revision!: string;

  @Column('uuid')
  teamId!: string;

  @Column('uuid')
  workspaceId!: string;

  /** null while no node is allocated and none was asked for by region. */
  @Column('bigint', { nullable: true })
  regionId!: string | null;

  @Column('text')
  name!: string;

  @Column('text')
  status!: string;

  @Column(instant)
  createdAt!: Date;
}
