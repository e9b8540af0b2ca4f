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
export { TeamDirectoryModule } from './team-directory.module.js';
export { TeamClosingEntity, WorkspaceClosingEntity } from './closing.entity.js';
export { ExpiredClosings } from './expired-closings.js';
export { createClosingTables, dropClosingTables } from './team-closings.js';
export type { Doomed } from './team-closings.js';
export { TeamDeletionAnswers } from './team-deletion-answers.js';
export type { EndingCause, Held } from './team-deletion-answers.js';
export { keepMemberRole, MemberRoleEntity } from './member-roles.js';
export { TeamGate } from './team-gate.js';
export { UsageTeller } from './usage-teller.js';
export type { HeldUsage } from './usage-teller.js';
