import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/**
 * A log-in to a pod, by SSH or to a terminal, for the audit. Of one that a crash has ended the end is when it was last
 * seen.
 */
@Entity('ssh_log_in')
@Index(['teamId', 'beganAt'])
@Index(['beganAt'])
@Index('ssh_log_in_open', ['beganAt'], { where: 'ended_at IS NULL' })
export class SshLogInEntity {
  @PrimaryColumn('uuid')
  logInId!: string;

  @Column('uuid')
  podId!: string;

  @Column('text')
  podName!: string;

  @Column('uuid')
  teamId!: string;

  @Column('uuid')
  userId!: string;

  /** Of the key; null for a terminal, which was opened by a call to the API. */
  @Column('text', { nullable: true })
  fingerprint!: string | null;

  @Column('text')
  address!: string;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  beganAt!: Date;

  /** When the replica that holds the connection last said so; null before it has. */
  @Column({ ...instant, nullable: true })
  seenAt!: Date | null;

  @Column({ ...instant, nullable: true })
  endedAt!: Date | null;

  @Column('text', { nullable: true })
  endReason!: string | null;
}
