import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Bare-metal instances that have ended stay without a limit: without the SSH keys of their teams. */
export class KeysOfEndedHosts1892000001000 implements MigrationInterface {
  readonly name = 'KeysOfEndedHosts1892000001000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `UPDATE baremetal_instance SET placed_keys = '' WHERE state IN ('failed', 'cancelled', 'released') AND placed_keys <> ''`,
    );
  }

  /** Nothing reads them. */
  async down(): Promise<void> {}
}
