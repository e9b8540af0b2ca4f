import { Column, Entity, Index, PrimaryColumn, PrimaryGeneratedColumn } from 'typeorm';

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

  @Column({ type: 'timestamp with time zone', precision: 3 })
  startedAt!: Date;

  @Column({ type: 'timestamp with time zone', precision: 3, nullable: true })
  endedAt!: Date | null;

  @Column('text')
  outcome!: AttemptOutcome;

  @Column('text', { nullable: true })
  reason!: string | null;
}

/** Who has read the password of an instance. Never changed, and removed after `ATOLL_HISTORY_RETENTION`. */
@Entity('baremetal_credential_read')
export class CredentialReadEntity {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  id!: string;

  @Column('uuid')
  instanceId!: string;

  /** `user:<id>` or `system:<service>`. */
  @Column('text')
  actor!: string;

  @Column('text')
  requestId!: string;

  @Column({ type: 'timestamp with time zone', precision: 3 })
  at!: Date;
}

/** A host that does not exist, of the driver `simulated`. In the database, so that it is one for all replicas. */
@Entity('simulated_host')
export class SimulatedHostEntity {
  @PrimaryColumn('bigint')
  nodeId!: string;

  @Column('bigint', { default: 0 })
  fence!: string;

  /** User name → what it may log in with. */
  @Column('jsonb', { default: () => "'{}'" })
  users!: Record<string, { password: string | null; keys: string[]; instanceId: string; sudo: boolean }>;
}
