import { instant } from '@atoll/database';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** A price as billing told of it. */
@Entity('price')
@Index('price_in_force', { synchronize: false })
export class KnownPriceEntity {
  @PrimaryColumn('uuid')
  priceId!: string;

  @Column('text')
  sku!: string;

  /** null: for every team. */
  @Column('uuid', { nullable: true })
  teamId!: string | null;

  @Column(instant)
  validFrom!: Date;

  /** Decimal text, as told: it is shown and not calculated with. */
  @Column('text')
  unitPrice!: string;

  /** ISO 4217; null where a replica of a release before 1885000000000 wrote the row. */
  @Column('text', { nullable: true })
  currency!: string | null;

  /** Of two with the same SKU, team and start the later holds. */
  @Column(instant)
  createdAt!: Date;
}

/** One row, once all prices there were at the first start have been fetched from billing. */
@Entity('price_directory_snapshot')
export class PriceSnapshotEntity {
  @PrimaryColumn(instant)
  completedAt!: Date;
}
