import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { UserEntity } from './user.entity.js';

/** A log-in and everything that follows from it: one family of refresh tokens, of which the newest is good. */
@Entity('session')
@Index(['userId', 'lastUsedAt'], { where: 'ended_at IS NULL' })
@Index(['expiresAt'])
@Index('session_of_user', ['userId'])
export class SessionEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @ForeignKey(() => UserEntity)
  @Column('uuid')
  userId!: string;

  /** Of the refresh token that is good now. The tokens themselves stand nowhere: see `derived-token.ts`. */
  @Column('integer', { default: 1 })
  generation!: number;

  @Column({ ...instant, default: () => 'now()' })
  rotatedAt!: Date;

  /** Of the attempt that rotated it, where the client named one: see `attemptDigest`. */
  @Column('bytea', { nullable: true })
  attemptDigest!: Buffer | null;

  /** Of the last log-in or refresh. */
  @Column('text')
  address!: string;

  @Column('text')
  device!: string;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;

  @Column({ ...instant, default: () => 'now()' })
  lastUsedAt!: Date;

  @Column(instant)
  idleUntil!: Date;

  @Column(instant)
  expiresAt!: Date;

  /** Whether the log-in took a second factor, or a passkey, which is both. */
  @Column('boolean', { default: false })
  hasSecondFactor!: boolean;

  @Column({ ...instant, nullable: true })
  endedAt!: Date | null;

  @Column('text', { nullable: true })
  endReason!: string | null;
}
