import { Column, Entity, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';

/** The holdings of a team have changed, and the change is still to be published. */
@Entity('capacity_change')
export class CapacityChangeEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id!: string;

  @Column('uuid')
  teamId!: string;
}

/** The last revision told of what a team holds. */
@Entity('team_capacity')
export class TeamCapacityEntity {
  @PrimaryColumn('uuid')
  teamId!: string;

  @Column('bigint')
  revision!: string;
}
