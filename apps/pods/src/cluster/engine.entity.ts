import { Column, Entity, PrimaryColumn } from 'typeorm';

/** What tells this platform from others that use the same cluster: one row. */
@Entity('installation')
export class InstallationEntity {
  /** Always 1. */
  @PrimaryColumn('integer')
  id!: number;

  @Column('uuid')
  installationId!: string;
}

/** The container engine that was first found at a socket. */
@Entity('engine')
export class EngineEntity {
  @PrimaryColumn('text')
  socketPath!: string;

  /** What `ClusterDriver.identify` answered. */
  @Column('text')
  identity!: string;
}
