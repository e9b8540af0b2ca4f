import type { EventType } from '@atoll/contracts';
import type { TeamChanged } from '@atoll/contracts/teams';
import { createIdempotencyTable, DatabaseModule, newId, openDataSource } from '@atoll/database';
import { createEventTables, eventEntities, EventsModule, InProcessCourier, Outbox, type Courier } from '@atoll/events';
import { InProcessBus, RpcModule } from '@atoll/rpc';
import { createDatabaseFrom, OwnerOfTeams } from '@atoll/testing';
import { Injectable, Module, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DataSource, type EntityManager, type MigrationInterface, type QueryRunner } from 'typeorm';
import { TeamClosingEntity, WorkspaceClosingEntity } from './closing.entity.js';
import { addWorkspaceRevisions, createTeamDirectoryTables, teamDirectoryEntities } from './directory-tables.js';
import { ExpiredClosings } from './expired-closings.js';
import { createClosingTables, type Doomed } from './team-closings.js';
import { TeamDeletionAnswers, type Held } from './team-deletion-answers.js';
import { TeamDirectoryModule } from './team-directory.module.js';

export { errorOf } from '@atoll/testing';

class Reader1 implements MigrationInterface {
  readonly name = 'Reader1790000000000';
  async up(runner: QueryRunner): Promise<void> {
    await createIdempotencyTable(runner, 'reader');
    await createEventTables(runner, 'reader');
    await createTeamDirectoryTables(runner, 'reader');
    await addWorkspaceRevisions(runner, 'reader');
    await createClosingTables(runner, 'reader');
    await runner.query('CREATE TABLE reader.thing (team_id uuid NOT NULL, workspace_id uuid NOT NULL)');
  }
  async down(): Promise<void> {}
}

const entities = [...eventEntities, ...teamDirectoryEntities, TeamClosingEntity, WorkspaceClosingEntity];
const database = { schema: 'reader', entities, migrations: [Reader1] };
const migrated = {
  name: 'reader',
  make: async (url: string) => (await openDataSource({ ...database, url, poolSize: 2 })).destroy(),
};

/** What teams hold here are things. */
@Injectable()
class ThingsOfTeams extends TeamDeletionAnswers {
  constructor(outbox: Outbox) {
    super('reader', outbox);
  }

  protected override async count(manager: EntityManager, { team_id, workspace_id }: Doomed): Promise<Held[]> {
    const [{ count = 0 } = {}] = await manager.query<{ count: number }[]>(
      'SELECT count(*)::int FROM thing WHERE team_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2)',
      [team_id, workspace_id ?? null],
    );
    return [
      { kind: 'thing', name: 'thing', count },
      { kind: 'nothing', name: 'nothing', count: 0 },
    ];
  }

  /** One at a time. */
  protected override async endSome(manager: EntityManager, teamId: string): Promise<void> {
    await manager.query('DELETE FROM thing WHERE ctid IN (SELECT ctid FROM thing WHERE team_id = $1 LIMIT 1)', [
      teamId,
    ]);
  }
}

@Module({ providers: [ExpiredClosings, ThingsOfTeams] })
class ReaderModule {}

/**
 * A service that does nothing but keep a directory, on a database of its own, with a stand-in for the owner of teams.
 */
export class DirectoryFixture {
  private constructor(
    readonly app: INestApplicationContext,
    readonly owner: OwnerOfTeams,
    private readonly others: ReturnType<Courier['join']>,
    private readonly dropDatabase: () => Promise<void>,
  ) {}

  /** `teams`: what their owner has. */
  static async start(options: { teams?: TeamChanged[]; isOwnerAway?: boolean } = {}): Promise<DirectoryFixture> {
    const { url, drop } = await createDatabaseFrom(migrated);
    const bus = new InProcessBus();
    const owner = new OwnerOfTeams(bus);
    owner.teams.push(...(options.teams ?? []));
    if (options.isOwnerAway) owner.leave();
    const courier = new InProcessCourier({ services: ['reader', 'specs'] });
    const imports = [
      DatabaseModule.forRoot({ ...database, url }),
      EventsModule.forRoot({ service: 'reader', courier }),
      TeamDirectoryModule.forRoot({ service: 'reader' }),
      RpcModule.forMemory({ bus }),
    ];
    const app = await NestFactory.createApplicationContext({ module: ReaderModule, imports }, { abortOnError: false });
    const others = courier.join('specs', [], () => undefined);
    return new DirectoryFixture(app, owner, others, drop);
  }

  async stop(): Promise<void> {
    await this.app.close();
    await this.dropDatabase();
  }

  query<Row extends object>(sql: string, values: unknown[] = []): Promise<Row[]> {
    return this.app.get(DataSource, { strict: false }).query<Row[]>(sql, values);
  }

  /** Hands the service an event as its owner would tell it, and waits until it has taken it. */
  async tell<P extends object>(type: EventType<P>, payload: P): Promise<void> {
    const event = { id: newId(), name: type.name, payload, occurredAt: new Date().toISOString() };
    const outcome = await this.others.publish(event, 1);
    if (outcome !== 'done') throw new Error(`${type.name} was not taken: ${outcome.reason}`);
  }
}
