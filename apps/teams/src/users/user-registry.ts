import { emailSpelling } from '@atoll/contracts';
import { newId } from '@atoll/database';
import { Injectable } from '@nestjs/common';
import { In, type EntityManager } from 'typeorm';
import { UserEntity } from './user.entity.js';

/** Who is known by an e-mail address. One address is one user, in whatever case it is written. */
@Injectable()
export class UserRegistry {
  /** The users of these addresses, in their order; those who are new to the platform are made, with the name given. */
  async findOrCreate(manager: EntityManager, people: readonly { email: string; name: string }[]): Promise<UserEntity[]> {
    if (people.length === 0) return [];
    const addressed = people.map(({ email, name }) => ({ email: emailSpelling(email), name }));
    // In one order, whatever the caller's, so that two transactions that name the same people do not wait for each other.
    const rows = addressed.toSorted((one, other) => (one.email < other.email ? -1 : 1)).map((person) => ({ id: newId(), ...person }));
    await manager.createQueryBuilder().insert().into(UserEntity).values(rows).orIgnore().execute();
    const users = await manager.findBy(UserEntity, { email: In(rows.map(({ email }) => email)) });
    const byEmail = new Map(users.map((user) => [user.email, user]));
    return addressed.map(({ email }) => {
      const user = byEmail.get(email);
      if (!user) throw new Error('A user that was just made is missing.');
      return user;
    });
  }
}
