import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { UserEntity } from './user.entity.js';

/**
 * A network from which a user has logged in: its failures are counted by themselves. A new password ends what is known
 * of the others.
 */
@Entity('log_in_network')
export class LogInNetworkEntity {
  @ForeignKey(() => UserEntity)
  @PrimaryColumn('uuid')
  userId!: string;

  @PrimaryColumn('text')
  network!: string;

  @Column({ ...instant, default: () => 'now()' })
  lastUsedAt!: Date;
}
