import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { UserEntity } from './user.entity.js';

@Entity('password')
export class PasswordEntity {
  @ForeignKey(() => UserEntity)
  @PrimaryColumn('uuid')
  userId!: string;

  /** Argon2id in the PHC string format, with its salt and parameters. */
  @Column('text')
  hash!: string;

  @Column({ ...instant, default: () => 'now()' })
  changedAt!: Date;
}
