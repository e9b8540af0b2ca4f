import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The capacity of a team as last published by gpuaas. No foreign key: it may outlive the team, or arrive before it. */
@Entity('team_capacity')
export class TeamCapacityEntity {
  @PrimaryColumn('uuid')
  teamId!: string;

  /** The physical GPUs on which the team holds capacity. */
  @Column('bigint', { array: true })
  gpuIds!: string[];

  @Column('boolean')
  hasPoolSubscription!: boolean;

  /** Of two facts the greater revision holds. */
  @Column('bigint')
  revision!: string;
}
