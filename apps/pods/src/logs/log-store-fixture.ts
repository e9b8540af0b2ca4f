import { randomUUID } from 'node:crypto';
import { DatabaseModule, ConnectionChanges, Statements, Transactions } from '@atoll/database';
import { createDatabase, startLoki, type Loki, type TestDatabase } from '@atoll/testing';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { PodLogs1811000000000 } from '../database/migrations/1811000000000-pod-logs.js';
import { nsOfMs, type LogSource, type LogStream, type StoredLine } from './log-line.js';
import {
  LogReaderEntity,
  LogScopeEntity,
  LogSourceEntity,
  LogVolumeEntity,
  PlatformLineEntity,
} from '../model/log-source.entity.js';
import type { LogPage, LogQuery, LogStore } from './log-store.js';
import { LokiLogStore } from './loki-log-store.js';
import { PostgresLogStore } from './postgres-log-store.js';

const retentionDays = 7;
export type StoreName = 'postgres' | 'loki';

type Asked = Partial<LogQuery> & { readonly store?: LogStore };

/** A clock that specs turn. */
class Clock {
  offsetMs = 0;
  /** By so much it goes on with each look at it. */
  stepMs = 0;
  readonly now = () => Date.now() + (this.offsetMs += this.stepMs);
}

/** The stores of one database and, where it is asked for, one Loki. */
export class StoreFixture {
  readonly clock = new Clock();

  private constructor(
    private readonly app: INestApplicationContext,
    private readonly database: TestDatabase,
    readonly loki: Loki | undefined,
    readonly store: LogStore,
  ) {}

  static async start(name: StoreName, limits: Parameters<typeof startLoki>[0] = {}): Promise<StoreFixture> {
    const database = await createDatabase();
    const entities = [LogReaderEntity, LogScopeEntity, LogSourceEntity, LogVolumeEntity, PlatformLineEntity];
    const module = DatabaseModule.forRoot({
      schema: 'pods',
      url: database.url,
      entities,
      migrations: [PodLogs1811000000000],
    });
    const app = await NestFactory.createApplicationContext(module, { abortOnError: false });
    const loki = name === 'loki' ? await startLoki(limits) : undefined;
    const clock = new Clock();
    const [statements, transactions] = [app.get(Statements), app.get(Transactions)];
    const store = loki
      ? // Few at once, so that each read has to ask several times.
        new LokiLogStore(transactions, {
          url: loki.url,
          retentionDays,
          step: 3,
          readMs: 20_000,
          pushMs: 20_000,
          now: clock.now,
        })
      : new PostgresLogStore(statements, transactions, app.get(ConnectionChanges), {
          retentionDays,
          searchStep: 4,
          now: clock.now,
        });
    const fixture = new StoreFixture(app, database, loki, store);
    Object.assign(fixture, { clock });
    return fixture;
  }

  async stop(): Promise<void> {
    await this.loki?.stop();
    await this.app.close();
    await this.database.drop();
  }

  /** The store in PostgreSQL as a replica has it, with no clock of a spec. */
  replica(): PostgresLogStore {
    const [statements, transactions] = [this.app.get(Statements), this.app.get(Transactions)];
    return new PostgresLogStore(statements, transactions, this.app.get(ConnectionChanges), { retentionDays });
  }

  query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.app.get(DataSource).query<Row[]>(sql, values);
  }

  /** Sources of one team, each a pod of its own in GPU service `gpuaasId`. */
  async sources(count: number, { teamId = randomUUID(), gpuaasId = '1' } = {}): Promise<LogSource[]> {
    const [scope] = await this.query<{ no: number }>(
      `INSERT INTO log_scope (team_id, gpuaas_id) VALUES ($1, $2)
       ON CONFLICT (team_id, gpuaas_id) DO UPDATE SET team_id = excluded.team_id RETURNING no`,
      [teamId, gpuaasId],
    );
    const rows = await this.query<{ no: number; pod_name: string }>(
      `INSERT INTO log_source (pod_id, pod_name, is_platform, scope_no)
       SELECT gen_random_uuid(), 'pod-' || number, false, $1 FROM generate_series(1, $2) number RETURNING no, pod_name`,
      [scope!.no, count],
    );
    return rows.map(({ no, pod_name }) => ({
      no,
      scopeNo: scope!.no,
      teamId,
      gpuaasId,
      podName: pod_name,
      isPlatform: false,
    }));
  }

  /** Stores lines of one source, all of which count. */
  async append(source: LogSource, lines: readonly StoredLine[]): Promise<void> {
    await this.store.append([{ source, lines }], () => Promise.resolve(new Set([source.no])));
  }

  /** Everything of these sources’ scopes, newest first, unless asked otherwise. */
  read(sources: readonly LogSource[], { store = this.store, ...asked }: Asked = {}): Promise<LogPage> {
    return store.read({
      teamId: sources[0]!.teamId,
      scopes: [...new Map(sources.map(({ scopeNo, gpuaasId }) => [scopeNo, { no: scopeNo, gpuaasId }])).values()],
      sources: null,
      sinceNs: 0n,
      untilNs: nsOfMs(Date.now() + 60_000),
      order: 'desc',
      after: null,
      search: null,
      searchMs: 60_000,
      limit: 100,
      ...asked,
    });
  }

  /** Page after page, until the range is read. */
  async readAll(sources: readonly LogSource[], asked: Asked = {}): Promise<StoredLine[]> {
    const lines: StoredLine[] = [];
    for (let after: LogQuery['after'] = null; ;) {
      const page = await this.read(sources, { ...asked, after });
      lines.push(...page.lines);
      if (!page.readTo) return lines;
      after = page.readTo;
    }
  }
}

/** A line of a source. */
export function aLine(
  source: LogSource,
  atNs: bigint,
  message: string,
  stream: LogStream | null = 'stdout',
): StoredLine {
  return { atNs, sourceNo: source.no, stream, message };
}
