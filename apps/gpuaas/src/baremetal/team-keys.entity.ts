import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The SSH keys of a user, as the pods service publishes them. */
@Entity('user_ssh_keys')
export class UserSshKeysEntity {
  @PrimaryColumn('uuid')
  userId!: string;

  @Column('text', { array: true })
  keys!: string[];

  /** Those of them that were added without a second factor. */
  @Column('text', { array: true, default: [] })
  keysWithoutFactor!: string[];

  @Column('bigint')
  revision!: string;
}
