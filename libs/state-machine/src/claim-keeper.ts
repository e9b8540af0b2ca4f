import { messageOf } from '@atoll/errors';
import { inBackground, type Statements } from '@atoll/database';
import { Logger } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import type { Claim } from './claims.js';
import type { MachineRow } from './machine-row.js';
import { parameters, type Statement } from './statement.js';

/** What the keeper needs to know of a machine. */
interface KeptTable {
  readonly table: string;
  readonly key: string;
  readonly keyType: string;
  keyOf(row: MachineRow): unknown;
}

/** A claim that this process holds. The keeper extends it until it is dropped. */
export class KeptClaim {
  private readonly controller = new AbortController();
  /** When the claim expires, by the database's clock, as far as this process knows. */
  until: Date | null;

  constructor(
    readonly of: KeptTable,
    readonly row: MachineRow,
    private heldUntilMs: number,
  ) {
    this.until = row.claimedUntil;
  }

  /** Aborted when the claim is lost: the row was moved, or the claim may have expired. Reading it checks the latter. */
  get lost(): AbortSignal {
    // A process that was frozen cannot rely on a beat: its own clock tells before it acts.
    if (performance.now() >= this.heldUntilMs) this.lose();
    return this.controller.signal;
  }

  extend(until: Date, heldUntilMs: number): void {
    this.until = until;
    this.heldUntilMs = heldUntilMs;
  }

  lose(): void {
    this.controller.abort();
  }
}

interface Beat {
  place: number;
  key: string;
  token: string;
  /** null if the claim was not extended. */
  until: Date | null;
  /** Whether the row has another token, or none. */
  is_lost: boolean;
}

/**
 * Extends all claims of this process, four times per length of a claim, by one statement for all machines. So claims
 * can be short, and the rows of a process that died are taken over soon. Rows that another transaction has locked are
 * skipped until the next beat.
 */
export class ClaimKeeper {
  private readonly logger = new Logger('Machines');
  private readonly kept = new Set<KeptClaim>();
  /** Until the next beat; undefined while one is under way. */
  private timer: NodeJS.Timeout | undefined;
  private isBeating = false;

  /**
   * `claimMs`: length of a claim after its last beat, in milliseconds. `reserved`: a connection for beats alone; that
   * of background work unless given.
   */
  constructor(
    private readonly dataSource: DataSource,
    readonly claimMs = 4_000,
    private readonly reserved?: Statements,
  ) {}

  keep<Row extends MachineRow>(of: KeptTable, { row, sentAtMs }: Claim<Row>): KeptClaim {
    const claim = new KeptClaim(of, row, sentAtMs + this.claimMs);
    this.kept.add(claim);
    this.schedule();
    return claim;
  }

  drop(claim: KeptClaim): void {
    this.kept.delete(claim);
    if (this.kept.size > 0) return;
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private schedule(): void {
    if (this.isBeating) return;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.isBeating = true;
      void this.beat().then(() => {
        this.isBeating = false;
        if (this.kept.size > 0) this.schedule();
      });
    }, this.claimMs / 4);
  }

  private send(tables: Tables): Promise<Beat[]> {
    const { text, values } = beatSql(this.claimMs, tables);
    if (this.reserved) return this.reserved.query<Beat>(text, values);
    return inBackground(() => this.dataSource.query<Beat[]>(text, values));
  }

  private async beat(): Promise<void> {
    // In one order, so that there are few statements.
    const tables = [...Map.groupBy(this.kept, ({ of }) => of)].toSorted(([one], [other]) =>
      one.table < other.table ? -1 : 1,
    );
    const sentAtMs = performance.now();
    try {
      const beats = await this.send(tables);
      const claims = new Map(
        tables.flatMap(([of, all], at) =>
          all.map((claim) => [`${at} ${String(of.keyOf(claim.row))} ${claim.row.claimToken}`, claim]),
        ),
      );
      for (const { place, key, token, until, is_lost } of beats) {
        const claim = claims.get(`${place} ${key} ${token}`);
        if (is_lost) claim?.lose();
        else if (until) claim?.extend(until, sentAtMs + this.claimMs);
      }
    } catch (error) {
      this.logger.warn(`Cannot extend claims; they expire unless the next beat succeeds: ${messageOf(error)}`);
    }
  }
}

type Tables = readonly (readonly [KeptTable, readonly Pick<KeptClaim, 'row'>[]])[];

export function beatSql(claimMs: number, tables: Tables): Statement {
  const { add, values } = parameters();
  const lengthMs = add(claimMs);
  const kept = tables.map(([of, claims]) => {
    const keys = add(claims.map(({ row }) => of.keyOf(row)));
    const tokens = add(claims.map(({ row }) => row.claimToken));
    return { of, held: `unnest(${keys}::${of.keyType}[], ${tokens}::uuid[]) held (key, token)` };
  });
  const extended = kept.map(
    ({ of, held }, at) => `extended_${at} AS (
      UPDATE ${of.table} SET claimed_until = clock_timestamp() + ${lengthMs} * interval '1 millisecond'
      WHERE ${of.key} IN (
        SELECT ${of.key} FROM ${of.table} JOIN ${held} ON ${of.key} = held.key AND claim_token = held.token
        FOR NO KEY UPDATE OF ${of.table} SKIP LOCKED
      ) RETURNING ${of.key} AS key, claimed_until
    )`,
  );
  const selected = kept.map(
    ({ of, held }, at) => `SELECT ${at} AS place, held.key::text AS key, held.token, extended.claimed_until AS until,
      row.claim_token IS DISTINCT FROM held.token AS is_lost
    FROM ${held} LEFT JOIN ${of.table} row ON row.${of.key} = held.key LEFT JOIN extended_${at} extended ON extended.key = held.key`,
  );
  return { text: `WITH ${extended.join(', ')} ${selected.join(' UNION ALL ')}`, values };
}
