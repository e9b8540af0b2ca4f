import { instant } from '@atoll/database';
import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * A device of a simulated node. In the database, so that it outlives a process as hardware does, and is one for all
 * replicas.
 */
@Entity('simulated_device')
export class SimulatedDeviceEntity {
  @PrimaryColumn('text')
  uuid!: string;

  @Column('text', { default: 'Spatial' })
  mode!: 'Spatial' | 'Temporal';

  @Column('integer', { default: 0 })
  generation!: number;

  /** What it switches to; null while it is at rest. */
  @Column('text', { nullable: true })
  pendingMode!: 'Spatial' | 'Temporal' | null;

  /** When the switch is done; `infinity`: never. */
  @Column({ ...instant, nullable: true })
  readyAt!: Date | null;

  @Column('text', { nullable: true })
  failure!: string | null;

  @Column('text', { array: true, default: () => "'{}'" })
  holders!: string[];
}

/** What a simulated node is to do wrong: set through the test door. */
@Entity('simulated_fault')
export class SimulatedFaultEntity {
  @PrimaryColumn('text')
  nodeName!: string;

  @PrimaryColumn('text')
  operation!: string;

  @Column('text')
  kind!: string;

  /** Times it still happens. */
  @Column('integer')
  times!: number;
}
