import { instant } from '@atoll/database';
import { Column, Entity, PrimaryColumn } from 'typeorm';

/** The host key of the SSH door: one row, for all replicas. */
@Entity('ssh_host_key')
export class SshHostKeyEntity {
  /** Always 1. */
  @PrimaryColumn('integer')
  id!: number;

  /** The private key in OpenSSH's form, for `hostKeyPurpose`. */
  @Column('text')
  sealed!: string;

  @Column({ ...instant, default: () => 'clock_timestamp()' })
  createdAt!: Date;
}

/** For libs/seal. */
export const hostKeyPurpose = 'pods.ssh_host_key';
