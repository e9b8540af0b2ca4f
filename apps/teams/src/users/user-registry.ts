import { createHmac } from 'node:crypto';
import { derivedKey } from '@atoll/api-keys';
import { emailSpelling } from '@atoll/contracts';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { TeamsSettings } from '../teams-settings.js';

/** Users by their e-mail address. One address is one user, in whatever case it is written. */
@Injectable()
export class UserRegistry {
  private readonly key: Buffer;

  constructor({ keyPepper }: TeamsSettings) {
    this.key = derivedKey(keyPepper, 'ids of users');
  }

  /**
   * The ids of the users of these addresses, in their order; users who are new to the platform are created, with the
   * name given. One statement that writes one row for each address, known or not: neither what is executed nor how
   * long it takes tells who was known. Before each row it locks the address until the transaction ends: of two who
   * insert the same row at once, one would be refused by the primary key, which cannot wait as the address does.
   */
  async findOrCreate(manager: EntityManager, people: readonly { email: string; name: string }[]): Promise<string[]> {
    if (people.length === 0) return [];
    const addressed = people.map(({ email, name }) => ({ email: emailSpelling(email), name }));
    // In one order, whatever the caller's, so that two transactions that name the same people do not wait for each
    // other.
    const sorted = addressed.toSorted((one, other) => (one.email < other.email ? -1 : 1));
    const rows = await manager.query<{ id: string; email: string }[]>(
      `INSERT INTO "user" (id, email, name)
       SELECT CASE WHEN EXISTS (SELECT FROM "user" u WHERE u.id = p.id AND u.email <> p.email) THEN gen_random_uuid() ELSE p.id END, email, name
       FROM unnest($1::uuid[], $2::text[], $3::text[]) p (id, email, name),
         LATERAL pg_advisory_xact_lock(hashtextextended(current_schema() || ' address ' || p.email, 0))
       ON CONFLICT (email) DO UPDATE SET name = "user".name RETURNING id, email`,
      [sorted.map(({ email }) => this.idOf(email)), sorted.map(({ email }) => email), sorted.map(({ name }) => name)],
    );
    const idOf = new Map(rows.map(({ id, email }) => [email, id]));
    return addressed.map(({ email }) => idOf.get(email) ?? '');
  }

  /**
   * The id of a user who is created here: an HMAC of the address under the pepper, in the form of a random UUID (v4).
   * An address whose empty account was removed gets the same id again, so that an inviter who compares ids does not
   * learn whether there was more on the account. It tells neither an age nor the address.
   */
  idOf(email: string): string {
    const bytes = createHmac('sha256', this.key).update(email).digest();
    bytes.writeUInt8(0x40 | (bytes.readUInt8(6) & 0x0f), 6);
    bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
    const hex = bytes.toString('hex', 0, 16);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  }
}
