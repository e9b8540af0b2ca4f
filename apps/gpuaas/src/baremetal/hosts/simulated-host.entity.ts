import { Column, Entity, PrimaryColumn } from 'typeorm';

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
