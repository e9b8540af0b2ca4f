import { randomInt } from 'node:crypto';
import { AppError } from '@atoll/errors';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';

/** Without vowels, so that they spell nothing. */
const letters = 'bcdfghjklmnpqrstvwxz';
/** Where half of all suffixes of a name are taken, one creation of 65,536 finds none that is free. */
const draws = 16;

/** Names of pods, of which no two are equal in all teams and for all time. */
@Injectable()
export class PodNames {
  /**
   * A name that no pod has or had. Throws `conflict` where all that were drawn are taken. Another transaction may draw
   * the same one: then the constraint of the table refuses the later of the two.
   */
  async free(manager: EntityManager, name: string): Promise<string> {
    const [found] = await manager.query<{ drawn: string }[]>(
      `SELECT drawn FROM unnest($1::text[]) drawn WHERE NOT EXISTS (SELECT FROM pod WHERE pod_name = drawn OFFSET 0) LIMIT 1`,
      [Array.from({ length: draws }, () => this.draw(name))],
    );
    if (!found) throw new AppError('conflict', `Too many pods were named ${name}: use another name.`);
    return found.drawn;
  }

  /**
   * A name that is a DNS label where `name` is one of at most 57 characters: the name and five letters out of 3.2
   * million.
   */
  draw(name: string): string {
    return `${name}-${Array.from({ length: 5 }, () => letters[randomInt(letters.length)]).join('')}`;
  }
}
