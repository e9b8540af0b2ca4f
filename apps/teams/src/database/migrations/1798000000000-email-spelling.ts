import { emailSpelling } from '@atoll/contracts';
import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Addresses that were kept before there was one spelling of each. Where two users have spellings of one address, both
 * stay as they are.
 */
export class EmailSpelling1798000000000 implements MigrationInterface {
  readonly name = 'EmailSpelling1798000000000';

  async up(runner: QueryRunner): Promise<void> {
    const users = (await runner.query(`SELECT id, email FROM "user" WHERE email ~ '[^[:ascii:]]'`)) as {
      id: string;
      email: string;
    }[];
    for (const { id, email } of users) {
      await runner.query(
        `UPDATE "user" SET email = $2 WHERE id = $1 AND NOT EXISTS (SELECT FROM "user" WHERE email = $2)`,
        [id, emailSpelling(email)],
      );
    }
  }

  /** The earlier spellings are not kept; any service reads the later ones. */
  async down(): Promise<void> {}
}
