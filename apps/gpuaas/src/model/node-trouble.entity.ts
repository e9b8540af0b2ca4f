import { instant } from '@atoll/database';
import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { NodeEntity } from './node.entity.js';

/** What a node is asked to do for those who are placed there. */
export type PlacedOperation = 'confirm' | 'occupy';

/** A node did not do what it was asked for last. Beside the node's row, so that nobody waits for the lock of that. */
@Entity('node_trouble')
export class NodeTroubleEntity {
  @PrimaryColumn('bigint')
  @ForeignKey(() => NodeEntity)
  nodeId!: string;

  @PrimaryColumn('text')
  operation!: PlacedOperation;

  /** Failures in a row, those within one time of avoidance counted once. */
  @Column('integer')
  failures!: number;

  @Column('text')
  reason!: string;

  @Column(instant)
  failedAt!: Date;

  /** Until then its GPUs come last where requests are placed. */
  @Column(instant)
  avoidedUntil!: Date;
}
