import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** Failed log-ins to one account, as a token bucket kept as one instant (GCRA). */
@Entity('log_in_bucket')
@Index(['fullAt'])
export class LogInBucketEntity {
  /** HMAC of the account and, where it is known to the account, of the network. */
  @PrimaryColumn('bytea')
  id!: Buffer;

  @Column(instant)
  fullAt!: Date;
}
