import { addWorkspaceRevisions, dropWorkspaceRevisions } from '@atoll/team-directory';
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class WorkspaceRevisions1801000000000 implements MigrationInterface {
  readonly name = 'WorkspaceRevisions1801000000000';

  async up(runner: QueryRunner): Promise<void> {
    await addWorkspaceRevisions(runner, 'gpuaas');
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropWorkspaceRevisions(runner, 'gpuaas');
  }
}
