import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * What the gpuaas service last told of a team. No foreign key: its facts may outlive the team, or be of none that is
 * known.
 */
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
