import { Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { UserEntity } from './user.entity.js';

/** A code that stands in for the authenticator once. */
@Entity('recovery_code')
export class RecoveryCodeEntity {
  @ForeignKey(() => UserEntity)
  @PrimaryColumn('uuid')
  userId!: string;

  /** HMAC-SHA-256 under a key made of the pepper. */
  @PrimaryColumn('bytea')
  digest!: Buffer;
}
