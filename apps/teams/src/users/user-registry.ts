import { randomUUID } from 'node:crypto';
import { emailSpelling } from '@atoll/contracts';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';

/** Users by their e-mail address. One address is one user, in whatever case it is written. */
@Injectable()
export class UserRegistry {
  /**
   * The ids of the users of these addresses, in their order; users who are new to the platform are created, with the
   * name given. One statement that writes one row for each address, known or not: neither what is executed nor how
   * long it takes tells who was known. Ids are random, so that they do not tell an age either.
   */
  async findOrCreate(manager: EntityManager, people: readonly { email: string; name: string }[]): Promise<string[]> {
    if (people.length === 0) return [];
    const addressed = people.map(({ email, name }) => ({ email: emailSpelling(email), name }));
    // In one order, whatever the caller's, so that two transactions that name the same people do not wait for each
    // other.
    const sorted = addressed.toSorted((one, other) => (one.email < other.email ? -1 : 1));
    const rows = await manager.query<{ id: string; email: string }[]>(
      `INSERT INTO "user" (id, email, name) SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[])
       ON CONFLICT (email) DO UPDATE SET name = "user".name RETURNING id, email`,
      [sorted.map(() => randomUUID()), sorted.map(({ email }) => email), sorted.map(({ name }) => name)],
    );
    const idOf = new Map(rows.map(({ id, email }) => [email, id]));
    return addressed.map(({ email }) => idOf.get(email) ?? '');
  }
}
