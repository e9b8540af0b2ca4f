import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';

export type AttemptAction = 'check' | 'provision' | 'rollback' | 'release' | 'clean' | 'reinstall' | 'keys';
export type AttemptOutcome = 'running' | 'succeeded' | 'failed' | 'interrupted';

/** One try at one step on a host. Written before the host is touched. */
@Entity('baremetal_attempt')
@Index(['instanceId', 'attemptId'])
@Index(['nodeId', 'attemptId'])
@Index('baremetal_attempt_running', { synchronize: false })
export class BaremetalAttemptEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  attemptId!: string;

  /** null for what concerns the host alone. */
  @Column('uuid', { nullable: true })
  instanceId!: string | null;

  @Column('bigint')
  nodeId!: string;

  @Column('text')
  action!: AttemptAction;

  @Column('text')
  step!: string;

  @Column(instant)
  startedAt!: Date;

  @Column({ ...instant, nullable: true })
  endedAt!: Date | null;

  @Column('text')
  outcome!: AttemptOutcome;

  @Column('text', { nullable: true })
  reason!: string | null;
}
