import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { TeamEntity } from './team.entity.js';
import { UserEntity } from './user.entity.js';

/**
 * A link by which a user sets a password or accepts an invitation, once. Its token follows from its id and stands
 * nowhere: see `../sessions/derived-token.ts`.
 */
@Entity('one_time_link')
@Index(['userId'], { where: 'used_at IS NULL' })
@Index('one_time_link_of_user', ['userId'])
@Index(['expiresAt'])
export class OneTimeLinkEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @ForeignKey(() => UserEntity)
  @Column('uuid')
  userId!: string;

  /** The address it was made for: the link is worth nothing where the user has another. */
  @Column('text')
  email!: string;

  /** Of an invitation; null for a link that sets a password. */
  @ForeignKey(() => TeamEntity)
  @Column('uuid', { nullable: true })
  teamId!: string | null;

  /** Whether whoever uses it has shown that the address is theirs. */
  @Column('boolean', { default: true })
  isProof!: boolean;

  /**
   * Whether a team_owner or the operator issued it. Whoever issues a link that proves nothing was shown it: no other
   * one may let a team_owner in.
   */
  @Column('boolean', { default: false })
  issuedByOwner!: boolean;

  /** Whether its use removes the second factors of its user. */
  @Column('boolean', { default: false })
  removesFactors!: boolean;

  /** Whether the start of a process made it, for the operator. */
  @Column('boolean', { default: false })
  isByStart!: boolean;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;

  @Column(instant)
  expiresAt!: Date;

  /** When it was used, or another one took its place. */
  @Column({ ...instant, nullable: true })
  usedAt!: Date | null;
}
