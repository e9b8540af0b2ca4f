import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

const instant = { type: 'timestamp with time zone', precision: 3 } as const;

/** A log-in to a pod, by SSH or to a terminal, for the audit. Of one that a crash has ended the end is not known. */
@Entity('ssh_log_in')
@Index(['teamId', 'beganAt'])
@Index(['beganAt'])
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

  @Column({ ...instant, nullable: true })
  endedAt!: Date | null;

  @Column('text', { nullable: true })
  endReason!: string | null;
}
