import type { BaremetalError } from '@atoll/contracts/gpuaas';
import { instant } from '@atoll/database';
import { MachineIndexes, MachineRow } from '@atoll/state-machine';
import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { BaremetalNodeEntity } from './baremetal-node.entity.js';

/** A request for a bare-metal host, and its outcome. */
@Entity('baremetal_instance')
@MachineIndexes('baremetal_instance')
@Index(['teamId', 'createdAt'])
@Index(['nodeId'])
@Index('baremetal_instance_active', { synchronize: false })
@Index('baremetal_instance_live_of_team', { synchronize: false })
@Index('baremetal_instance_waiting', { synchronize: false })
export class BaremetalInstanceEntity extends MachineRow {
  /** A UUID v7: in the order of arrival. */
  @PrimaryColumn('uuid')
  instanceId!: string;

  @Column('uuid')
  teamId!: string;

  @Column('uuid')
  workspaceId!: string;

  @Column('text')
  name!: string;

  /** As requested; null: any. */
  @Column('bigint', { nullable: true })
  regionId!: string | null;

  @Column('text', { nullable: true })
  gpuModel!: string | null;

  @Column('integer', { nullable: true })
  gpuCount!: number | null;

  @Column('integer', { nullable: true })
  cpuCores!: number | null;

  @Column('integer', { nullable: true })
  memoryGb!: number | null;

  @ForeignKey(() => BaremetalNodeEntity)
  @Column('bigint', { nullable: true })
  nodeId!: string | null;

  @Column('text')
  username!: string;

  /** Sealed. Kept until the host is known to refuse it. */
  @Column('text', { nullable: true })
  password!: string | null;

  /** JSON of the key pair that proves log-in by key, sealed. */
  @Column('text', { nullable: true })
  proofKey!: string | null;

  /** The keys that were put on the host last, one a line; empty once it has ended, as its row stays. */
  @Column('text', { default: '' })
  placedKeys!: string;

  /** Of the node, when the instance entered its state, or when the last try of a step on the host since then began. */
  @Column('bigint', { default: 0 })
  fence!: string;

  @Column('text', { nullable: true })
  waitingReason!: string | null;

  @Column('jsonb', { nullable: true })
  error!: BaremetalError | null;

  @Column({ ...instant, nullable: true })
  activeSince!: Date | null;

  @Column({ ...instant, nullable: true })
  endedAt!: Date | null;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}

/** For libs/seal. */
export function passwordPurpose(instanceId: string): string {
  return `baremetal_instance:${instanceId}.password`;
}

/** For libs/seal. */
export function proofKeyPurpose(instanceId: string): string {
  return `baremetal_instance:${instanceId}.proof_key`;
}
