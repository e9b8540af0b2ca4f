import type { MigrationInterface, QueryRunner } from 'typeorm';

export class KeyPepper1875000000000 implements MigrationInterface {
  readonly name = 'KeyPepper1875000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'CREATE TABLE key_pepper (is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only), fingerprint bytea NOT NULL)',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE key_pepper');
  }
}
