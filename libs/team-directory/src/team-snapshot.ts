import { teamDirectory } from '@atoll/contracts';
import { Statements, Transactions } from '@atoll/database';
import { FirstSnapshot, type SnapshotPage } from '@atoll/events';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { DirectoryReader } from './directory-reader.js';
import { TeamDirectory } from './team-directory.js';

/** For a page; a stop waits no longer. */
const deadlineMs = 5_000;

/** Fetches all teams from their owner, for a service that starts beside teams that are older than it. */
@Injectable()
export class TeamSnapshot extends FirstSnapshot {
  private after: string | undefined;

  constructor(
    private readonly directory: TeamDirectory,
    statements: Statements,
    transactions: Transactions,
    private readonly rpc: Rpc,
    private readonly reader: DirectoryReader,
  ) {
    super('team_snapshot', statements, transactions);
  }

  protected async nextPage(): Promise<SnapshotPage | undefined> {
    const asked = this.after === undefined ? {} : { after: this.after };
    const { teams } = await this.rpc.call(teamDirectory.snapshot, asked, systemContext(this.reader.service, { deadlineMs }));
    const last = teams.at(-1);
    return (
      last && {
        write: async (manager) => {
          for (const team of teams) await this.directory.apply(manager, team);
        },
        taken: () => (this.after = last.team_id),
      }
    );
  }
}
