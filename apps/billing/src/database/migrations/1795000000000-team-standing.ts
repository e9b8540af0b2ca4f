import { addTeamStanding, dropTeamStanding } from '@atoll/team-directory';
import type { MigrationInterface, QueryRunner } from 'typeorm';

export class TeamStanding1795000000000 implements MigrationInterface {
  readonly name = 'TeamStanding1795000000000';

  async up(runner: QueryRunner): Promise<void> {
    await addTeamStanding(runner, 'billing');
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTeamStanding(runner, 'billing');
  }
}
