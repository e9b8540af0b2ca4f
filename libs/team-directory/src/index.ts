export {
  addTeamStanding,
  addWorkspaceRevisions,
  createTeamDirectoryTables,
  dropTeamDirectoryTables,
  dropTeamStanding,
  dropWorkspaceRevisions,
  teamDirectoryEntities,
} from './directory-tables.js';
export { TeamEntity } from './known-team.entity.js';
export { TeamDirectory } from './team-directory.js';
export type { KnownTeam, KnownWorkspace } from './team-directory.js';
export { TeamDirectoryModule } from './team-directory.module.js';
