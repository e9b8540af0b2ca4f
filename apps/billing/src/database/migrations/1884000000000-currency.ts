import type { MigrationInterface, QueryRunner } from 'typeorm';

export class Currency1884000000000 implements MigrationInterface {
  readonly name = 'Currency1884000000000';

  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'CREATE TABLE currency (is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only), code text NOT NULL)',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE currency');
  }
}
