import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, PrimaryColumn, Unique } from 'typeorm';

@Entity('user')
@Unique(['email'])
export class UserEntity {
  @PrimaryColumn('uuid')
  id!: string;

  /** In lower case: one address is one user, however it is written. */
  @Column('text')
  email!: string;

  @Column('text')
  name!: string;

  @Column('text', { default: 'UTC' })
  timezone!: string;

  @Column('boolean', { default: false })
  platformAdmin!: boolean;

  /** When the user has shown that the address is theirs: by a link that went there, or by the operator's word. */
  @Column({ ...instant, nullable: true })
  verifiedAt!: Date | null;

  /**
   * The team whose administrator was shown the link by which the password was set: until the address is verified,
   * sessions reach no further.
   */
  @ForeignKey('TeamEntity')
  @Column('uuid', { nullable: true })
  confinedToTeamId!: string | null;

  /** Whether it was a team_owner of that team, or the operator, who was shown the link. */
  @Column('boolean', { default: false })
  confinedByOwner!: boolean;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}
