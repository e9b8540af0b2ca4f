import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import { MembershipEntity } from './membership.entity.js';
import { UserEntity } from './user.entity.js';

/**
 * A key acts as its user in one team, and dies with that membership; without a team it acts for the user as a whole.
 */
@Entity('api_key')
@Unique(['digest'])
@Index(['teamId', 'userId', 'createdAt'])
@Index('api_key_of_user', ['userId'])
@ForeignKey(() => MembershipEntity, ['teamId', 'userId'], ['teamId', 'userId'], { onDelete: 'CASCADE' })
export class ApiKeyEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @Index({ where: 'team_id IS NULL' })
  @ForeignKey(() => UserEntity)
  @Column('uuid')
  userId!: string;

  @Column('uuid', { nullable: true })
  teamId!: string | null;

  /** HMAC-SHA-256 under the pepper. The key itself is stored nowhere. */
  @Column('bytea')
  digest!: Buffer;

  /** How the key is shown: `atl_ab12…wxyz`. */
  @Column('text')
  mask!: string;

  /** null: never, for the operator's key. */
  @Column({ ...instant, nullable: true })
  expiryDate!: Date | null;

  @Column('text', { default: '' })
  ipWhitelist!: string;

  /**
   * Whether a team_owner or the operator issued it. Whoever issues a key has seen it: no other key may become that of a
   * team_owner.
   */
  @Column('boolean', { default: false })
  issuedByOwner!: boolean;

  /**
   * Of a key of the user as a whole: whether a session without a second factor made it, or a key that lacks one too. It
   * opens no team that has required one since before its user joined.
   */
  @Column('boolean', { default: false })
  lacksSecondFactor!: boolean;

  /**
   * Who was shown the key when it was issued, where that is somebody else than its user and not the operator. The key
   * counts for them until its user has accepted the invitation.
   */
  @Column('uuid', { nullable: true })
  shownTo!: string | null;

  @Column({ ...instant, nullable: true })
  revokedAt!: Date | null;

  /** When another key replaced it: during its grace period it still works, but cannot issue keys. */
  @Column({ ...instant, nullable: true })
  replacedAt!: Date | null;

  /** The expiry that a manager of the team set: no key that the holder issues in its place lives longer. */
  @Column({ ...instant, nullable: true })
  boundUntil!: Date | null;

  /** By the clock and not by the transaction's beginning: the newest of a member's keys is the one that is shown. */
  @Column({ type: 'timestamptz', precision: 6, default: () => 'clock_timestamp()' })
  createdAt!: Date;
}
