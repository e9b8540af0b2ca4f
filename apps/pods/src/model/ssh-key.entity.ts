import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn, Unique } from 'typeorm';

/** A user who has or had keys, with the number of changes of them. */
@Entity('ssh_key_owner')
export class SshKeyOwnerEntity {
  @PrimaryColumn('uuid')
  userId!: string;

  @Column('integer')
  revision!: number;

  /** Keys added since `addedSince`. */
  @Column('integer', { default: 0 })
  added!: number;

  @Column({ ...instant, default: () => 'now()' })
  addedSince!: Date;
}

/** A user's public key. Two users may have the same one: who signs with it is whichever of them may come in. */
@Entity('ssh_key')
@Unique(['userId', 'fingerprint'])
export class SshKeyEntity {
  @PrimaryColumn('uuid')
  sshKeyId!: string;

  @Column('uuid')
  userId!: string;

  @Column('text')
  name!: string;

  @Column('text')
  type!: string;

  @Index()
  @Column('text')
  fingerprint!: string;

  /** As in `authorized_keys`, without its comment. */
  @Column('text')
  publicKey!: string;

  /** Whether the session or API key that added it lacked a second factor. */
  @Column('boolean', { default: false })
  lacksSecondFactor!: boolean;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  createdAt!: Date;
}
