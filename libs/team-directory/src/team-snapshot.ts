import { teamDirectory, type TeamsAfter } from '@atoll/contracts/teams';
import { Statements, Transactions } from '@atoll/database';
import { FirstSnapshot, type SnapshotPage } from '@atoll/events';
import { Rpc, systemContext } from '@atoll/rpc';
import { Injectable } from '@nestjs/common';
import { applyUpdate } from './apply-update.js';
import { DirectoryReader } from './directory-reader.js';

/** For a page; a stop waits no longer. */
const deadlineMs = 5_000;

/** Fetches all teams from their owner, for a service that starts beside teams that are older than it. */
@Injectable()
export class TeamSnapshot extends FirstSnapshot {
  private after: TeamsAfter = {};

  constructor(
    statements: Statements,
    transactions: Transactions,
    private readonly rpc: Rpc,
    private readonly reader: DirectoryReader,
  ) {
    super('team_snapshot', statements, transactions);
  }

  protected async nextPage(): Promise<SnapshotPage | undefined> {
    const { updates } = await this.rpc.call(
      teamDirectory.page,
      this.after,
      systemContext(this.reader.service, { deadlineMs }),
    );
    const last = updates.at(-1);
    if (!last) return undefined;
    const lastWorkspace = last.workspaces.at(-1);
    return {
      write: async (manager) => {
        for (const update of updates) await applyUpdate(manager, update);
      },
      taken: () => (this.after = { team_id: last.team_id, ...(lastWorkspace && { workspace_id: lastWorkspace.id }) }),
    };
  }
}
