import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { UserEntity } from './user.entity.js';

/** The secret that a user's authenticator shares (TOTP). */
@Entity('second_factor')
export class SecondFactorEntity {
  @ForeignKey(() => UserEntity)
  @PrimaryColumn('uuid')
  userId!: string;

  /** Sealed, for `secondFactorPurpose`. */
  @Column('text')
  sealed!: string;

  /** Whether the user has confirmed it with a code; until then log-ins do not require it. */
  @Column('boolean', { default: false })
  isConfirmed!: boolean;

  /** Of the code that was used last: no code is used twice (RFC 6238, 5.2). */
  @Column('bigint', { default: 0 })
  lastStep!: string;

  /** When the user has confirmed it; until then, when it was begun. */
  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}

/** For libs/seal. */
export function secondFactorPurpose(userId: string): string {
  return `teams.second_factor:${userId}`;
}
