import type { ConnectionPod } from '@atoll/contracts/gpuaas';
import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { SubscriptionEntity } from '../model/subscription.entity.js';

/** How what runs on a subscription was last known to be reached. */
@Entity('connection')
export class ConnectionEntity {
  @ForeignKey(() => SubscriptionEntity)
  @PrimaryColumn('bigint')
  subscriptionId!: string;

  @Column('jsonb')
  pods!: ConnectionPod[];

  @Column(instant)
  refreshedAt!: Date;
}

/** The last refresh of what a team has in a GPU service. */
@Entity('connection_refresh')
export class ConnectionRefreshEntity {
  @PrimaryColumn('uuid')
  teamId!: string;

  @PrimaryColumn('bigint')
  gpuaasId!: string;

  @Column(instant)
  startedAt!: Date;

  /** null: it is under way, unless it began longer ago than one may take. */
  @Column({ ...instant, nullable: true })
  endedAt!: Date | null;

  @Column('boolean', { default: false })
  hasFailed!: boolean;
}
