import type { PodMount } from '@atoll/contracts/pods';
import { MachineIndexes } from '@atoll/state-machine';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { RunRow } from './run-row.js';

@Entity('vm')
@Index(['teamId', 'createdAt', 'instanceId'])
@Index('vm_name', { synchronize: false })
@Index('vm_running_of_cluster', { synchronize: false })
@MachineIndexes('vm')
export class VmEntity extends RunRow {
  @PrimaryColumn('uuid')
  instanceId!: string;

  /** Unique in the team among those that are not deleted. */
  @Column('text')
  name!: string;

  @Column('text')
  regionName!: string;

  @Column('text')
  flavour!: string;

  @Column('integer')
  vcpus!: number;

  /** 10^9 bytes. */
  @Column('numeric', { precision: 9, scale: 2 })
  memoryGb!: string;

  /** The image that the present run has, normalised. */
  @Column('text')
  reference!: string;

  @Column('jsonb')
  volumes!: PodMount[];

  @Column('boolean')
  autoRestart!: boolean;

  /** Counts runs, over all starts. */
  @Column('integer', { default: 1 })
  run!: number;

  /** SHA-256 of the SSH keys that its present run was told, hexadecimal; empty for none. */
  @Column('text', { default: '' })
  placedKeys!: string;

  /** Counts what other services were told of it. */
  @Column('integer', { default: 0 })
  told!: number;
}
