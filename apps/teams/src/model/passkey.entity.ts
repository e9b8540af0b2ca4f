import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import { UserEntity } from './user.entity.js';

/** A public key of an authenticator (WebAuthn). */
@Entity('passkey')
@Unique(['credentialId'])
@Index(['userId'])
export class PasskeyEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @ForeignKey(() => UserEntity)
  @Column('uuid')
  userId!: string;

  /** As the authenticator names it, base64url. */
  @Column('text')
  credentialId!: string;

  @Column('bytea')
  publicKey!: Buffer;

  @Column('bigint')
  counter!: string;

  /** Empty: nobody reads what a browser says of them, which is signed by nothing and may be anything. */
  @Column('text', { array: true })
  transports!: string[];

  @Column('text')
  name!: string;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;

  @Column({ ...instant, nullable: true })
  lastUsedAt!: Date | null;
}
