import type { BaremetalDifference, BaremetalDriver, BaremetalFindings, HomeRule } from '@atoll/contracts/gpuaas';
import { instant } from '@atoll/database';
import { MachineIndexes, MachineRow } from '@atoll/state-machine';
import { Column, Entity, ForeignKey, Index, PrimaryGeneratedColumn } from 'typeorm';
import { RegionEntity } from './region.entity.js';

/** Why a node is in maintenance. */
export const maintenanceCodes = ['operator', 'failures', 'host_key_changed', 'clean_failed', 'reinstall'] as const;
export type MaintenanceCode = (typeof maintenanceCodes)[number];

/** A host that one tenant at a time has alone. */
@Entity('baremetal_node')
@MachineIndexes('baremetal_node')
@Index('baremetal_node_host', { synchronize: false })
@Index('baremetal_node_name', { synchronize: false })
@Index('baremetal_node_free', { synchronize: false })
export class BaremetalNodeEntity extends MachineRow {
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  nodeId!: string;

  @Column('text')
  name!: string;

  @ForeignKey(() => RegionEntity)
  @Column('bigint')
  regionId!: string;

  @Column('text')
  host!: string;

  @Column('integer')
  port!: number;

  @Column('text')
  sshUser!: string;

  /** JSON of an `SshCredential`, sealed. */
  @Column('text')
  credential!: string;

  /** null until a check has pinned what the host shows. */
  @Column('text', { nullable: true })
  hostKey!: string | null;

  /**
   * Machine id of the host; "" if it has none; null until a check has verified that no other node has the same host.
   */
  @Column('text', { nullable: true })
  machineId!: string | null;

  @Column('text')
  driver!: BaremetalDriver;

  @Column('boolean')
  tenantSudo!: boolean;

  @Column('text')
  home!: HomeRule;

  @Column('text', { nullable: true })
  reinstallUrl!: string | null;

  /** null where it has no GPUs. */
  @Column('text', { nullable: true })
  gpuModel!: string | null;

  @Column('integer')
  gpuCount!: number;

  @Column('integer')
  cpuCores!: number;

  @Column('integer')
  memoryGb!: number;

  @Column('jsonb', { nullable: true })
  found!: BaremetalFindings | null;

  @Column('jsonb', { default: () => "'[]'" })
  differences!: BaremetalDifference[];

  /** The findings that the operator has accepted although they differ. */
  @Column('jsonb', { nullable: true })
  accepted!: BaremetalFindings | null;

  @Column('boolean', { default: false })
  isMaintenance!: boolean;

  /** Who set the maintenance: the platform ends it after cleaning only if it set it for cleaning. */
  @Column('text', { nullable: true })
  maintenanceCode!: MaintenanceCode | null;

  @Column('text', { nullable: true })
  maintenanceReason!: string | null;

  @Column('boolean', { default: false })
  isRetired!: boolean;

  @Column({ ...instant, nullable: true })
  unreachableSince!: Date | null;

  @Column('text', { nullable: true })
  unreachableReason!: string | null;

  /**
   * The instance on the node, or the last one if the node could not be cleaned. No foreign key: instances refer to
   * nodes.
   */
  @Column('uuid', { nullable: true })
  instanceId!: string | null;

  /** Counts what is done to the host. The host refuses a script with a smaller number than it has seen. */
  @Column('bigint', { default: 0 })
  fence!: string;

  /** Instances in a row that could not be provisioned here. */
  @Column('integer', { default: 0 })
  failures!: number;

  /** The team of the last of them. */
  @Column('uuid', { nullable: true })
  failedTeamId!: string | null;

  /** Sealed. What the reinstall hook is given, until it has answered. */
  @Column('text', { nullable: true })
  reinstallToken!: string | null;

  /** When the hook took its call. */
  @Column({ ...instant, nullable: true })
  reinstallAskedAt!: Date | null;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}

/** For libs/seal. */
export function nodeCredentialPurpose(nodeId: string): string {
  return `baremetal_node:${nodeId}.credential`;
}

/** For libs/seal. */
export function reinstallTokenPurpose(nodeId: string): string {
  return `baremetal_node:${nodeId}.reinstall_token`;
}
