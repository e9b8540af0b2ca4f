import { Module, type DynamicModule } from '@nestjs/common';
import { DirectoryReader } from './directory-reader.js';
import { TeamDirectory } from './team-directory.js';
import { TeamGate } from './team-gate.js';
import { TeamSnapshot } from './team-snapshot.js';
import { UsageTeller } from './usage-teller.js';

/**
 * Teams and their workspaces, as a projection of what their owner tells. Needs the tables of
 * `createTeamDirectoryTables`, events and an `Rpc`.
 */
@Module({})
export class TeamDirectoryModule {
  /** `service` is who asks the owner. */
  static forRoot({ service }: { service: string }): DynamicModule {
    return {
      module: TeamDirectoryModule,
      global: true,
      providers: [
        { provide: DirectoryReader, useValue: { service } },
        TeamDirectory,
        TeamGate,
        TeamSnapshot,
        UsageTeller,
      ],
      exports: [TeamDirectory, TeamGate, UsageTeller],
    };
  }
}
