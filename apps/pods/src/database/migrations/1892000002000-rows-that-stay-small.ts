import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What stays of deleted pods and of VMs without a limit has a bounded size: no command, and a digest of SSH keys. */
export class RowsThatStaySmall1892000002000 implements MigrationInterface {
  readonly name = 'RowsThatStaySmall1892000002000';
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`UPDATE pod SET command = '[]' WHERE state = 'deleted' AND pg_column_size(command) > 1024`);
    await runner.query(
      `UPDATE vm SET placed_keys = encode(sha256(convert_to(placed_keys, 'UTF8')), 'hex') WHERE octet_length(placed_keys) > 64`,
    );
  }

  /** The release before tells VMs their keys again. */
  async down(): Promise<void> {}
}
