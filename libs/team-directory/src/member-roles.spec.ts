import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { MembershipChanged } from '@atoll/contracts/teams';
import { newId, Transactions } from '@atoll/database';
import { runs } from '@atoll/testing';
import fc from 'fast-check';
import { DirectoryFixture } from './directory-fixture.js';
import { keepMemberRole } from './member-roles.js';

let fixture: DirectoryFixture;
beforeAll(async () => {
  fixture = await DirectoryFixture.start();
  await fixture.query(`CREATE TABLE member_role (team_id uuid NOT NULL, user_id uuid NOT NULL, role text, revision bigint NOT NULL,
    required_factor boolean NOT NULL DEFAULT false, PRIMARY KEY (team_id, user_id))`);
});
afterAll(() => fixture.stop());

type Step = 'invite' | 'accept' | 'change role' | 'take over' | 'remove';
type Standing = 'none' | 'invited' | 'joined';

/** One person in one team: how they stand with it, and everything that its owner has said about that. */
class Person {
  readonly ids = { team_id: newId(), user_id: newId() };
  readonly said: MembershipChanged[] = [];
  hasJoined = false;
  role: string | null = null;
  #standing: Standing = 'none';

  take(step: Step): void {
    const before = this.#standing;
    const after = standingAfter(before, step);
    if (after === undefined) return;
    this.#standing = after;
    this.hasJoined ||= after === 'joined';
    const revision = this.said.length + 1;
    const role = after === 'none' ? null : revision % 2 === 0 ? 'member' : 'viewer';
    this.role = after === 'joined' ? role : null;
    this.said.push({
      ...this.ids,
      role,
      revision,
      ...(after === 'invited' && { is_invited: true }),
      ...(before !== 'joined' && { had_not_joined: true }),
    });
  }
}

/** Undefined for a step that is not possible. */
function standingAfter(before: Standing, step: Step): Standing | undefined {
  if (before === 'none') return step === 'invite' ? 'invited' : undefined;
  if (step === 'remove') return 'none';
  if (step === 'change role') return before;
  if (step === 'accept') return before === 'invited' ? 'joined' : undefined;
  return step === 'take over' && before === 'joined' ? 'invited' : undefined;
}

const keep = (told: MembershipChanged) =>
  fixture.app.get(Transactions, { strict: false }).run((manager) => keepMemberRole(manager, told));
const rowsOf = ({ ids }: Person) =>
  fixture.query<{ role: string | null }>('SELECT role FROM member_role WHERE team_id = $1 AND user_id = $2', [
    ids.team_id,
    ids.user_id,
  ]);

/** All that was said, each up to three times, in the order of `keys`. */
function deliveries(said: readonly MembershipChanged[], keys: readonly number[]): MembershipChanged[] {
  const keyed = said.flatMap((told, index) => {
    const copies = 1 + ((keys[index % keys.length] ?? 0) % 3);
    return Array.from({ length: copies }, (_, copy) => ({
      told,
      key: keys[(index * 7 + copy * 13) % keys.length] ?? 0,
    }));
  });
  return keyed.toSorted((one, other) => one.key - other.key).map(({ told }) => told);
}

it('law: the role of a member ends as it is at its owner, whatever the order and number of what comes; who never joined leaves no row', async () => {
  const step = fc.constantFrom<Step>('invite', 'accept', 'change role', 'take over', 'remove');
  const keys = fc.array(fc.nat({ max: 10_000 }), { minLength: 40, maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), keys, fc.constantFrom(1, 1, 4), async (steps, order, lanes) => {
      const person = new Person();
      for (const each of steps) person.take(each);
      const delivered = deliveries(person.said, order);
      for (let first = 0; first < delivered.length; first += lanes)
        await Promise.all(delivered.slice(first, first + lanes).map(keep));
      const rows = await rowsOf(person);
      expect(rows[0]?.role ?? null).toBe(person.role);
      expect(rows).toHaveLength(person.hasJoined ? 1 : 0);
    }),
    runs(60),
  );
});
