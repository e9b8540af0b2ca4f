import { Column, Entity, PrimaryColumn } from 'typeorm';

/** A part of the number of teams that are not deleted: the sum over all shards. Written by triggers of `team`. */
@Entity('team_count')
export class TeamCountEntity {
  @PrimaryColumn('smallint')
  shard!: number;

  @Column('integer')
  live!: number;
}
