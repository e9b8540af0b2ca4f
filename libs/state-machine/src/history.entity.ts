import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryGeneratedColumn, type QueryRunner } from 'typeorm';

/**
 * Every transition of every machine: actor, reason, time and request. Append-only; a service says for how long they are
 * kept (`historyDays`).
 */
@Entity('machine_history')
@Index(['machine', 'instance', 'id'])
export class MachineHistory {
  @PrimaryGeneratedColumn('identity', { generatedIdentity: 'ALWAYS', type: 'bigint' })
  id!: string;

  @Column('text')
  machine!: string;

  /** Primary key of the row. */
  @Column('text')
  instance!: string;

  /** null for the insertion of the row. */
  @Column('text', { nullable: true })
  fromState!: string | null;

  @Column('text')
  toState!: string;

  /** null for the insertion of the row. */
  @Column('text', { nullable: true })
  event!: string | null;

  @Column('text')
  actor!: string;

  @Column('text', { nullable: true })
  reason!: string | null;

  @Column('text', { nullable: true })
  requestId!: string | null;

  @Column(instant)
  at!: Date;
}

export async function createHistoryTable(runner: QueryRunner): Promise<void> {
  await runner.query(`CREATE TABLE machine_history (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    machine text NOT NULL,
    instance text NOT NULL,
    from_state text,
    to_state text NOT NULL,
    event text,
    actor text NOT NULL,
    reason text,
    request_id text,
    at timestamptz(3) NOT NULL
  )`);
  await runner.query('CREATE INDEX ON machine_history (machine, instance, id)');
}

export async function dropHistoryTable(runner: QueryRunner): Promise<void> {
  await runner.query('DROP TABLE machine_history');
}
