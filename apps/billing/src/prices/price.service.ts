import { pageWindow, requirePlatformAdmin, requireService, type CallContext } from '@atoll/contracts';
import {
  priceChanged,
  type CreatePrice,
  type ListPrices,
  type Price,
  type PricePage,
  type PricesAfter,
  type PricesInForce,
} from '@atoll/contracts/billing';
import { instantJson, newId, readPage, Statements, Transactions } from '@atoll/database';
import { AppError, invalidField } from '@atoll/errors';
import { Outbox } from '@atoll/events';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { BillingSettings } from '../billing-settings.js';
import { TeamDirectory } from '@atoll/team-directory';
import { PlatformCurrency } from './platform-currency.js';

/** `$1` is the currency. The price as decimal text without zeros behind it. */
const priceJson = (row: string) => `json_build_object(
  'price_id', ${row}.id, 'sku', ${row}.sku, 'unit', coalesce(${row}.former_unit, sku.unit), 'unit_price', trim_scale(${row}.unit_price)::text, 'currency', $1::text,
  'valid_from', ${instantJson(`${row}.valid_from`)}, 'team_id', ${row}.team_id,
  'created_at', ${instantJson(`${row}.created_at`)}, 'replaced_at', ${instantJson(`${row}.replaced_at`)})`;

const directoryPageSize = 500;
const directoryQuery = `SELECT ${priceJson('row')} AS price
  FROM (SELECT * FROM price WHERE replaced_at IS NULL AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3) row JOIN sku USING (sku)
  ORDER BY row.id`;

/** A price with its neighbours: the present one with the same start, and the one that applies at that start. */
interface Place {
  is_past: boolean;
  same_start: string | null;
  price_before: string | null;
}

/** What units cost. Nothing is rated here: a bill looks up the price of each moment when it is read. */
@Injectable()
export class PricesService {
  constructor(
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly directory: TeamDirectory,
    private readonly outbox: Outbox,
    private readonly currency: PlatformCurrency,
    private readonly settings: BillingSettings,
  ) {}

  async create(terms: CreatePrice, context: CallContext): Promise<Price> {
    const kept = await this.transactions.kept<Price>(context);
    if (kept) return kept;
    const validFrom = readStart(terms.valid_from);
    requirePlatformAdmin(context.caller);
    if (terms.team_id !== undefined) await this.directory.team(terms.team_id);
    return this.transactions.once(context, async (manager) => {
      await this.currency.keep(manager);
      // Prices of one SKU are set one after the other.
      await this.requireUnit(manager, terms, validFrom);
      const place = await this.placeOf(manager, terms, validFrom);
      requireForce(terms, place);
      const price = await this.insert(manager, terms, validFrom, place);
      if (place.is_past || place.same_start) await this.audit(manager, price, place, context);
      await this.outbox.add(manager, priceChanged, price, context);
      return price;
    });
  }

  async list({ sku, team_id, include_ended, ...asked }: ListPrices, { caller }: CallContext): Promise<PricePage> {
    requirePlatformAdmin(caller);
    if (team_id !== undefined) await this.directory.teamEvenIfDeleted(team_id);
    const { page, limit, offset } = pageWindow(asked, 1);
    const { total, rows } = await readPage<{ price: Price }>(this.statements, {
      from: `price WHERE ($4::text IS NULL OR sku = $4) AND ($5::uuid IS NULL OR team_id = $5) AND ($6 OR replaced_at IS NULL)`,
      order: 'created_at, id',
      window: 'LIMIT $2 OFFSET $3',
      columns: `${priceJson('row')} AS price`,
      joins: 'JOIN sku USING (sku)',
      values: [this.settings.currency, limit, offset, sku ?? null, team_id ?? null, include_ended === 'true'],
    });
    return { data: rows.map(({ price }) => price), pagination: { page, limit, total } };
  }

  /** By id and not by number: a price that is replaced between two pages must not move another one out of both. */
  async page({ price_id }: PricesAfter, { caller }: CallContext): Promise<PricesInForce> {
    requireService(caller);
    const values = [this.settings.currency, price_id ?? null, directoryPageSize];
    const rows = await this.statements.query<{ price: Price }>(directoryQuery, values);
    return { prices: rows.map(({ price }) => price) };
  }

  /**
   * Locks the SKU until the transaction ends; makes it where this is its first price, and gives it this unit where this
   * one replaces its only price.
   */
  private async requireUnit(
    manager: EntityManager,
    { sku, unit, team_id, force }: CreatePrice,
    validFrom: string,
  ): Promise<void> {
    await manager.query('INSERT INTO sku (sku, unit) VALUES ($1, $2) ON CONFLICT DO NOTHING', [sku, unit]);
    const [known] = await manager.query<{ unit: string }[]>('SELECT unit FROM sku WHERE sku = $1 FOR NO KEY UPDATE', [
      sku,
    ]);
    if (!known || known.unit === unit) return;
    const others = await manager.query<object[]>(
      `SELECT FROM price WHERE sku = $1 AND replaced_at IS NULL
         AND (team_id IS DISTINCT FROM $2 OR valid_from <> $3) LIMIT 1`,
      [sku, team_id ?? null, validFrom],
    );
    if (!force || others.length > 0)
      throw new AppError(
        'conflict',
        `${sku} is priced by the unit "${known.unit}": all prices of a SKU must use the same unit. The unit of its only price is corrected with the same valid_from and force.`,
      );
    await manager.query('UPDATE price SET former_unit = $2 WHERE sku = $1 AND former_unit IS NULL', [sku, known.unit]);
    await manager.query('UPDATE sku SET unit = $2 WHERE sku = $1', [sku, unit]);
  }

  private async placeOf(manager: EntityManager, { sku, team_id }: CreatePrice, validFrom: string): Promise<Place> {
    const ofSku = `FROM price WHERE sku = $1 AND replaced_at IS NULL`;
    const [place] = await manager.query<Place[]>(
      `SELECT $3::timestamptz < clock_timestamp() AS is_past,
        (SELECT id ${ofSku} AND team_id IS NOT DISTINCT FROM $2 AND valid_from = $3) AS same_start,
        (SELECT unit_price ${ofSku} AND (team_id IS NULL OR team_id = $2) AND valid_from <= $3
          ORDER BY team_id IS NULL, valid_from DESC LIMIT 1) AS price_before`,
      [sku, team_id ?? null, validFrom],
    );
    return place ?? { is_past: false, same_start: null, price_before: null };
  }

  private async insert(
    manager: EntityManager,
    terms: CreatePrice,
    validFrom: string,
    { same_start }: Place,
  ): Promise<Price> {
    if (same_start) await manager.query('UPDATE price SET replaced_at = clock_timestamp() WHERE id = $1', [same_start]);
    // Of two prices with one start the later `created_at` holds, so it is later even within a millisecond.
    const [row] = await manager.query<{ price: Price }[]>(
      `WITH price AS (
         INSERT INTO price (id, sku, team_id, valid_from, unit_price, created_at)
         VALUES ($2, $3, $4, $5, $6,
           GREATEST(clock_timestamp(), (SELECT created_at + interval '1 millisecond' FROM price WHERE id = $7))) RETURNING *
       )
       SELECT ${priceJson('price')} AS price FROM price JOIN sku USING (sku)`,
      [this.settings.currency, newId(), terms.sku, terms.team_id ?? null, validFrom, terms.unit_price, same_start],
    );
    if (!row) throw new Error('An insert returned no row.');
    return row.price;
  }

  private async audit(
    manager: EntityManager,
    price: Price,
    { price_before }: Place,
    { caller, requestId }: CallContext,
  ): Promise<void> {
    await manager.query(
      `INSERT INTO price_audit (id, price_id, sku, team_id, valid_from, price_before, price_after, user_id, request_id)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      [
        newId(),
        price.price_id,
        price.sku,
        price.team_id,
        price.valid_from,
        price_before,
        price.unit_price,
        caller.kind === 'user' ? caller.userId : null,
        requestId,
      ],
    );
  }
}

function requireForce({ force = false }: CreatePrice, { is_past, same_start }: Place): void {
  if (force) return;
  if (is_past) {
    throw invalidField(
      'valid_from',
      'isPast',
      'must not be in the past; send `force: true` to set a past price and re-rate the usage it covers.',
    );
  }
  if (same_start)
    throw new AppError('conflict', 'A price with this valid_from exists already; send `force: true` to replace it.');
}

/** To the millisecond. Throws `invalid_input` for one that its offset moves out of the years that it is written in. */
function readStart(text: string): string {
  const start = new Date(text);
  const year = start.getUTCFullYear();
  if (year >= 2000 && year <= 9999) return start.toISOString();
  throw invalidField(
    'valid_from',
    'isInstant',
    'must be an instant in the year 2000 or later, to the millisecond, such as 2026-10-01T00:00:00.000Z.',
  );
}
