import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { UserEntity } from './user.entity.js';

/** What an authenticator is to sign, once. */
@Entity('passkey_challenge')
@Index(['expiresAt'])
@Index('passkey_challenge_of_user', ['userId'])
export class PasskeyChallengeEntity {
  @PrimaryColumn('uuid')
  id!: string;

  /** Who adds a passkey; null for a log-in. */
  @ForeignKey(() => UserEntity)
  @Column('uuid', { nullable: true })
  userId!: string | null;

  @Column('text')
  challenge!: string;

  @Column(instant)
  expiresAt!: Date;
}
