import { notFound, pageWindow } from '@atoll/contracts';
import {
  countedRowsLimit,
  type ListProcesses,
  type MachineKind,
  type MachineProcess,
  type MachineState,
  type MachineStatesOfService,
  type ProcessPage,
} from '@atoll/contracts/operator';
import { instantJson, toAppError } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { notBegun } from './begin-sql.js';
import type { DurableMachine } from './durable-machine.js';
import { failedState } from './machine-migrations.js';
import type { MachineRow } from './machine-row.js';
import { MachineWorkers } from './machine-workers.js';

/** Nobody can do anything for a failed process in a final state: it is shown for so many days. */
const finalDays = 7;
const errorExcerpt = 4_000;

/**
 * Conditions in SQL. A stable state has no deadline; its step is repeated after a failure all the same, and what never
 * rests there waits, whether it is due or not.
 */
const kinds: Record<MachineKind, (machine: DurableMachine<MachineRow>) => string> = {
  waiting: ({ definition }) => {
    const waits = [...definition.states].flatMap(([state, { neverRests, rule }]) => {
      if (rule) return rule.portion === undefined ? [] : ` OR (${notBegun(state)})`;
      return neverRests ? ` OR state = '${state}'` : [];
    });
    const isTried = 'attempts > 0 AND (due_at IS NOT NULL OR parked_until IS NOT NULL)';
    return `NOT ${failedState} AND (deadline_at IS NOT NULL OR (${isTried})${waits.join('')})`;
  },
  failed: ({ definition }) => {
    const isRecent = `entered_at > now() - interval '${finalDays} days'`;
    const failed = [...definition.states].filter(([state]) => state.endsWith('failed'));
    // By the index alone: whatever has failed has ended, and only what has lately is read. A machine with failed states
    // of both kinds has all of them read.
    if (failed.every(([, { isFinal }]) => isFinal)) return `${failedState} AND ${isRecent}`;
    return `${failedState} AND (state <> ALL ($1::text[]) OR ${isRecent})`;
  },
};

type Count = Omit<MachineState, 'service' | 'machine' | 'has_more' | 'ages'> & MachineState['ages'];

/**
 * What waits or has failed in the machines of this service, by statements that cost the same however many rows are at
 * rest.
 */
@Injectable()
export class MachineDesk {
  constructor(
    private readonly discovery: DiscoveryService,
    private readonly dataSource: DataSource,
  ) {}

  async states(service: MachineState['service']): Promise<MachineStatesOfService> {
    const data: MachineState[] = [];
    for (const machine of this.machines()) {
      const counts = await this.query<Count>(countedBy(machine), [finalStatesOf(machine)]);
      const totals = new Map(
        counts.map(({ kind }) => [kind, counts.reduce((sum, one) => sum + (one.kind === kind ? one.count : 0), 0)]),
      );
      for (const { under_minute, under_hour, under_day, older, ...count } of counts) {
        data.push({
          service,
          machine: machine.definition.id,
          ...count,
          has_more: (totals.get(count.kind) ?? 0) >= countedRowsLimit,
          ages: { under_minute, under_hour, under_day, older },
        });
      }
    }
    return { data };
  }

  /** Those that entered their state first, first. Throws AppError `not_found` for an unknown machine. */
  async list({ machine: name, kind, state, ...page }: ListProcesses): Promise<ProcessPage> {
    const machine = this.machines().find(({ definition }) => definition.id === name);
    if (!machine) throw notFound('state machine');
    const { limit, offset, ...window } = pageWindow(page, 1);
    const condition = `$1::text[] IS NOT NULL AND ${kinds[kind](machine)} AND ($2::text IS NULL OR state = $2)`;
    const values = [finalStatesOf(machine), state ?? null];
    const [counted] = await this.query<{ total: number }>(
      `SELECT count(*)::int AS total FROM (SELECT FROM ${machine.table} WHERE ${condition} LIMIT ${countedRowsLimit}) found`,
      values,
    );
    const data = await this.query<MachineProcess>(
      `SELECT ${machine.key}::text AS key, state, '${kind}' AS kind, ${instantJson('entered_at')} AS entered_at,
              ${instantJson('deadline_at')} AS deadline_at, ${instantJson('parked_until')} AS next_try_at, attempts,
              CASE WHEN last_error IS NOT NULL THEN
                jsonb_build_object('code', last_error->>'code', 'message', left(last_error->>'message', ${errorExcerpt}), 'at', last_error->>'at')
              END AS error,
              left(lane, 500) AS lane, request_id
       FROM ${machine.table} WHERE ${condition} ORDER BY ${machine.table}.entered_at, ${machine.key} LIMIT $3 OFFSET $4`,
      [...values, limit, offset],
    );
    return { data, pagination: { ...window, limit, total: counted?.total ?? 0 } };
  }

  /** Those that the workers of this application run. */
  private machines(): DurableMachine<MachineRow>[] {
    const found = this.discovery.getProviders().map(({ instance }): unknown => instance);
    const workers = new Set(found.filter((instance) => instance instanceof MachineWorkers));
    return [...workers]
      .flatMap(({ machines }) => machines)
      .toSorted((one, other) => (one.definition.id < other.definition.id ? -1 : 1));
  }

  private async query<Row>(sql: string, values: unknown[]): Promise<Row[]> {
    try {
      return await this.dataSource.query<Row[]>(sql, values);
    } catch (error) {
      throw toAppError(error);
    }
  }
}

function finalStatesOf({ definition }: DurableMachine<MachineRow>): string[] {
  return [...definition.states].flatMap(([name, { isFinal }]) => (isFinal ? [name] : []));
}

function countedBy(machine: DurableMachine<MachineRow>): string {
  const some = (kind: MachineKind) =>
    `(SELECT state, '${kind}' AS kind, deadline_at, attempts, entered_at FROM ${machine.table}
      WHERE $1::text[] IS NOT NULL AND ${kinds[kind](machine)} LIMIT ${countedRowsLimit})`;
  const age = (longer: string, shorter?: string) =>
    `count(*) FILTER (WHERE entered_at <= now() - interval '${longer}'${shorter ? ` AND entered_at > now() - interval '${shorter}'` : ''})::int`;
  return `SELECT state, kind, count(*)::int AS count,
      count(*) FILTER (WHERE deadline_at < now())::int AS overdue, count(*) FILTER (WHERE attempts > 0)::int AS retrying,
      count(*) FILTER (WHERE entered_at > now() - interval '1 minute')::int AS under_minute,
      ${age('1 minute', '1 hour')} AS under_hour, ${age('1 hour', '1 day')} AS under_day, ${age('1 day')} AS older,
      ${instantJson('min(entered_at)')} AS oldest_entered_at
    FROM (${some('waiting')} UNION ALL ${some('failed')}) found GROUP BY state, kind ORDER BY state, kind`;
}
