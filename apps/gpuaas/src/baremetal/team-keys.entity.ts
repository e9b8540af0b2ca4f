import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** The role of a user in a team, as the teams service publishes it. */
@Entity('member_role')
@Index(['userId'])
export class MemberRoleEntity {
  @PrimaryColumn('uuid')
  teamId!: string;

  @PrimaryColumn('uuid')
  userId!: string;

  /** null once the member is gone. */
  @Column('text', { nullable: true })
  role!: string | null;

  /** Of the team. Of two facts the one with the greater revision holds. */
  @Column('bigint')
  revision!: string;
}

/** The SSH keys of a user, as the pods service publishes them. */
@Entity('user_ssh_keys')
export class UserSshKeysEntity {
  @PrimaryColumn('uuid')
  userId!: string;

  @Column('text', { array: true })
  keys!: string[];

  @Column('bigint')
  revision!: string;
}
