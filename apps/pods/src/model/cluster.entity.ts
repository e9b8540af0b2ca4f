import type { ClusterDriverName } from '@atoll/contracts/gpuaas';
import { Column, Entity, PrimaryColumn } from 'typeorm';

const maybe = { nullable: true } as const;

/** What tells this platform from others that use the same cluster: one row. */
@Entity('installation')
export class InstallationEntity {
  /** Always 1. */
  @PrimaryColumn('integer')
  id!: number;

  @Column('uuid')
  installationId!: string;
}

/** What runs the pods of a GPU service, as the gpuaas service has told. */
@Entity('cluster')
export class ClusterEntity {
  @PrimaryColumn('bigint')
  gpuaasId!: string;

  @Column('text')
  driver!: ClusterDriverName;

  @Column('text')
  publicHost!: string;

  @Column('text', maybe)
  socket!: string | null;

  @Column('text', maybe)
  url!: string | null;

  @Column('text', maybe)
  doorImage!: string | null;

  @Column('text', maybe)
  sealedTls!: string | null;

  @Column('boolean')
  isUnreachable!: boolean;

  @Column('bigint')
  setting!: string;

  @Column('bigint')
  revision!: string;

  /** What `ClusterDriver.identify` answered first since it was set; null: it was not asked yet. */
  @Column('text', maybe)
  identity!: string | null;
}
