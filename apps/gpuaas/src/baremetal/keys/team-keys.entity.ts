import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The SSH keys of a user, as the pods service publishes them. */
@Entity('user_ssh_keys')
export class UserSshKeysEntity {
  @PrimaryColumn('uuid')
  userId!: string;

  @Column('text', { array: true })
  keys!: string[];

  /** Which of them, counted from 1, were added without a second factor. */
  @Column('integer', { array: true, default: [] })
  withoutFactor!: number[];

  @Column('bigint')
  revision!: string;
}
