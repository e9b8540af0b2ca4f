import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { UserEntity } from './user.entity.js';

/** Whom a provider knows under a subject (OpenID Connect): the user, whatever the address says. */
@Entity('user_identity')
@Index(['userId'])
export class UserIdentityEntity {
  @PrimaryColumn('text')
  issuer!: string;

  @PrimaryColumn('text')
  subject!: string;

  @ForeignKey(() => UserEntity)
  @Column('uuid')
  userId!: string;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}
