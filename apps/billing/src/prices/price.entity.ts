import { instant } from '@atoll/database';
import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';

/** What all prices are in; one row, once there is a price. */
@Entity('currency')
@Check('currency_is_only_check', 'is_only')
export class CurrencyEntity {
  @PrimaryColumn('boolean', { default: true })
  isOnly!: boolean;

  /** ISO 4217. */
  @Column('text')
  code!: string;
}

/** A SKU that has had a price, with its unit, which all its prices share. */
@Entity('sku')
export class SkuEntity {
  @PrimaryColumn('text')
  sku!: string;

  @Column('text')
  unit!: string;
}

/** Append-only: a price that another took the place of stays, marked. */
@Entity('price')
@Check('price_unit_price_check', `unit_price >= 0`)
@Index(['createdAt', 'id'])
@Index('price_in_force', { synchronize: false })
export class PriceEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @ForeignKey(() => SkuEntity)
  @Column('text')
  sku!: string;

  /** null: for every team. No foreign key: teams are another service's. */
  @Column('uuid', { nullable: true })
  teamId!: string | null;

  @Column(instant)
  validFrom!: Date;

  @Column('numeric', { precision: 19, scale: 9 })
  unitPrice!: string;

  @Column(instant)
  createdAt!: Date;

  @Column({ ...instant, nullable: true })
  replacedAt!: Date | null;

  /** Of a price that was replaced by one of another unit: the unit that it had. */
  @Column('text', { nullable: true })
  formerUnit!: string | null;
}

/** Who changed what things cost after the fact. */
@Entity('price_audit')
export class PriceAuditEntity {
  @PrimaryColumn('uuid')
  id!: string;

  @ForeignKey(() => PriceEntity)
  @Column('uuid')
  priceId!: string;

  @Column('text')
  sku!: string;

  @Column('uuid', { nullable: true })
  teamId!: string | null;

  @Column(instant)
  validFrom!: Date;

  /** What held at `validFrom` before; null for none. */
  @Column('numeric', { precision: 19, scale: 9, nullable: true })
  priceBefore!: string | null;

  @Column('numeric', { precision: 19, scale: 9 })
  priceAfter!: string;

  /** null: a service by itself. */
  @Column('uuid', { nullable: true })
  userId!: string | null;

  @Column('text')
  requestId!: string;

  @Column({ ...instant, default: () => 'now()' })
  createdAt!: Date;
}
