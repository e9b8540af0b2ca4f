import type { Cluster, ClusterChanged, ClusterDriverName } from '@atoll/contracts/gpuaas';
import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { GpuaasEntity } from './region.entity.js';

const maybe = { nullable: true } as const;

/** What runs the pods of a GPU service. */
@Entity('cluster')
@Index('cluster_due', ['nextCheckAt'], { where: `driver <> 'simulated'` })
export class ClusterEntity {
  @PrimaryColumn('bigint')
  @ForeignKey(() => GpuaasEntity)
  gpuaasId!: string;

  @Column('text')
  driver!: ClusterDriverName;

  @Column('text')
  publicHost!: string;

  /** Of docker: this, or `url`. */
  @Column('text', maybe)
  socket!: string | null;

  @Column('text', maybe)
  url!: string | null;

  @Column('text', maybe)
  doorImage!: string | null;

  /** With `url`: sealed JSON of `ca`, `cert` and `key`, for `clusterPurpose`. */
  @Column('text', maybe)
  sealedTls!: string | null;

  /** Counts how often it was set. */
  @Column('bigint')
  setting!: string;

  /** Counts its changes: how often it was set, and how often its status changed. */
  @Column('bigint')
  revision!: string;

  /** What `ClusterDriver.identify` answered first since it was set; null: it never did. */
  @Column('text', maybe)
  identity!: string | null;

  @Column('text')
  status!: Cluster['status'];

  /** null before the first check. */
  @Column({ ...instant, nullable: true })
  since!: Date | null;

  @Column('jsonb')
  checks!: Cluster['checks'];

  @Column(instant)
  nextCheckAt!: Date;

  /** Whether it did not answer when it was checked last, and is asked once more before it is `unreachable`. */
  @Column('boolean', { default: false })
  hasMissed!: boolean;

  /** Counts the looks that began; of a look under way: its number. */
  @Column('bigint', { default: 0 })
  looks!: string;

  /** The number of the look that found what the row shows. What an earlier one finds later is not stored. */
  @Column('bigint', { default: 0 })
  latestLook!: string;
}

/**
 * Whether an engine answered when it was checked last: one that is unreachable all the same is of no use, or is another
 * one.
 */
export function hasAnswered({ checks }: Pick<ClusterEntity, 'checks'>): boolean {
  return checks.some(({ name, ok }) => name === 'reachable' && ok);
}

/** The row as other services are told of it. */
export function clusterToTell(cluster: ClusterEntity): ClusterChanged {
  const { gpuaasId, driver, publicHost, socket, url, doorImage, sealedTls, setting, revision, status, since } = cluster;
  return {
    gpuaas_id: gpuaasId,
    driver,
    public_host: publicHost,
    socket,
    url,
    door_image: doorImage,
    sealed_tls: sealedTls,
    setting: Number(setting),
    revision: Number(revision),
    // A cluster that was never looked at may well answer.
    is_unreachable: status === 'unreachable' && since !== null,
  };
}
