import { setTimeout as delay } from 'node:timers/promises';
import { isAppError } from '@atoll/errors';
import { teamDirectory } from '@atoll/contracts';
import { Statements, Transactions } from '@atoll/database';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable, Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { DirectoryReader } from './directory-reader.js';
import { TeamDirectory } from './team-directory.js';

const longestWaitMs = 30_000;
/** For a page; a stop waits no longer. */
const deadlineMs = 5_000;

/** Fetches all teams from their owner, once, for a service that starts beside teams that are older than it. Events are followed meanwhile. */
@Injectable()
export class TeamSnapshot implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger(TeamSnapshot.name);
  private readonly stop = new AbortController();
  private fetched: Promise<void> = Promise.resolve();

  constructor(
    private readonly directory: TeamDirectory,
    private readonly statements: Statements,
    private readonly transactions: Transactions,
    private readonly rpc: Rpc,
    private readonly reader: DirectoryReader,
  ) {}

  /** Delays no start: what is not known yet is asked of the owner one by one. */
  onApplicationBootstrap(): void {
    this.fetched = this.fetch();
  }

  async onModuleDestroy(): Promise<void> {
    this.stop.abort();
    await this.fetched;
  }

  private async fetch(): Promise<void> {
    for (let waitMs = 100; !this.stop.signal.aborted; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
      try {
        const done = await this.statements.query('directory.snapshot', 'SELECT FROM team_snapshot', []);
        if (done.length === 0) await this.fetchAll();
        return;
      } catch (error) {
        this.tell(error);
        // Between two tries nothing is under way that would have to be waited for.
        await delay(waitMs, undefined, { signal: this.stop.signal, ref: false }).catch(() => undefined);
      }
    }
  }

  private async fetchAll(): Promise<void> {
    let after: string | undefined;
    for (;;) {
      const { teams } = await this.rpc.call(
        teamDirectory.snapshot,
        after === undefined ? {} : { after },
        systemContext(this.reader.service, { deadlineMs }),
      );
      const last = teams.at(-1);
      if (!last) break;
      for (const team of teams) await this.transactions.run((manager) => this.directory.apply(manager, team));
      after = last.team_id;
      if (this.stop.signal.aborted) return;
    }
    await this.transactions.run(async (manager) => {
      await manager.query('INSERT INTO team_snapshot (completed_at) VALUES (now()) ON CONFLICT DO NOTHING');
    });
  }

  /** That their owner starts later is nothing to worry about. */
  private tell(error: unknown): void {
    const isAway = isAppError(error) && error.code === 'unavailable';
    this.logger[isAway ? 'debug' : 'warn'](`The teams could not be fetched yet: ${error instanceof Error ? error.message : String(error)}`);
  }
}
