import { Column, Entity, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';

/** What a team holds has changed and is still to be told. */
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
