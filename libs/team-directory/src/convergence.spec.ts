import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type TeamChanged, type TeamStanding, type TeamUpdate } from '@atoll/contracts/teams';
import { newId, Transactions } from '@atoll/database';
import { runs, untilLockWaits } from '@atoll/testing';
import fc from 'fast-check';
import { applyUpdate, updateOf } from './apply-update.js';
import { DirectoryFixture } from './directory-fixture.js';

/** What an owner of one team may do next; `at` picks a workspace. */
type Step =
  | { kind: 'rename' | 'suspend' | 'delete'; isLegacy: boolean }
  | { kind: 'create' | 'rename workspace' | 'delete workspace'; at: number; isLegacy: boolean }
  | { kind: 'page'; size: number }
  | { kind: 'look up'; at: number };

const isLegacy = fc.boolean();
const at = fc.nat({ max: 20 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom('rename' as const, 'suspend' as const, 'delete' as const), isLegacy }),
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('create' as const, 'rename workspace' as const, 'delete workspace' as const),
      at,
      isLegacy,
    }),
  },
  fc.record({ kind: fc.constant('page' as const), size: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ kind: fc.constant('look up' as const), at }),
);

/** The owner of one team: its state, and everything it has said about it so far, in either format. */
class Owner {
  readonly id = newId();
  readonly said: TeamUpdate[] = [];
  readonly #first = newId();
  #revision = 1;
  #standing: TeamStanding = {
    name: 'team 1',
    is_suspended: false,
    status: 'active',
    default_workspace_id: this.#first,
  };
  #live = new Map([[this.#first, 'default']]);
  #deleted = new Map<string, string>();

  constructor() {
    this.#say({ team: this.#standing, workspaces: this.#described(), is_complete: true });
  }

  take(step: Step): void {
    if (step.kind === 'page') return this.#sayPage(step.size);
    if (step.kind === 'look up')
      return this.#say({ team: this.#standing, workspaces: this.#described().slice(step.at, step.at + 1) });
    this.#revision += 1;
    const name = `name ${this.#revision}`;
    const change = 'at' in step ? this.#changeWorkspace(step.kind, step.at, name) : this.#changeTeam(step.kind, name);
    if (step.isLegacy) this.said.push(updateOf(this.#whole()));
    else this.#say(change);
  }

  /** What a projection must hold in the end: every workspace that ever was, by its last name. */
  state(): object {
    const [live, deleted] = [[...this.#live], [...this.#deleted]];
    return {
      team: this.#standing,
      workspaces: [
        ...live.map(([id, name]) => ({ id, name, is_deleted: false })),
        ...deleted.map(([id, name]) => ({ id, name, is_deleted: true })),
      ].toSorted((one, other) => (one.id < other.id ? -1 : 1)),
    };
  }

  #changeTeam(kind: 'rename' | 'suspend' | 'delete', name: string): Partial<TeamUpdate> {
    if (kind === 'rename') this.#standing = { ...this.#standing, name };
    if (kind === 'suspend') this.#standing = { ...this.#standing, is_suspended: !this.#standing.is_suspended };
    if (kind === 'delete') this.#standing = { ...this.#standing, status: 'deleted' };
    return { team: this.#standing };
  }

  #changeWorkspace(
    kind: 'create' | 'rename workspace' | 'delete workspace',
    at: number,
    name: string,
  ): Partial<TeamUpdate> {
    const ids = [...this.#live.keys()];
    const id = kind === 'create' ? newId() : (ids[at % ids.length] ?? '');
    // The default workspace cannot be deleted; it is deleted with its team.
    const isDeleted = kind === 'delete workspace' && id !== this.#first;
    const last = kind === 'delete workspace' ? (this.#live.get(id) ?? '') : name;
    if (isDeleted) this.#live.delete(id);
    (isDeleted ? this.#deleted : this.#live).set(id, last);
    return { workspaces: [{ id, name: last, is_deleted: isDeleted }] };
  }

  /** All workspaces, `size` an update. */
  #sayPage(size: number): void {
    const all = this.#described();
    for (let first = 0; first < all.length; first += size) {
      this.#say({ team: this.#standing, workspaces: all.slice(first, first + size), is_complete: all.length <= size });
    }
  }

  #say(change: Partial<TeamUpdate>): void {
    this.said.push({ team_id: this.id, revision: this.#revision, workspaces: [], is_complete: false, ...change });
  }

  #described(): TeamUpdate['workspaces'] {
    return [...this.#live].map(([id, name]) => ({ id, name, is_deleted: false }));
  }

  #whole(): TeamChanged {
    const { name, is_suspended, status } = this.#standing;
    const workspaces = [...this.#live].map(([id, workspaceName]) => ({ id, name: workspaceName }));
    return { team_id: this.id, revision: this.#revision, name, is_suspended, status, workspaces };
  }
}

describe('the projection of a team', () => {
  let fixture: DirectoryFixture;
  let transactions: Transactions;
  beforeAll(async () => {
    fixture = await DirectoryFixture.start();
    transactions = fixture.app.get(Transactions, { strict: false });
  });
  afterAll(() => fixture.stop());

  const apply = (update: TeamUpdate) => transactions.run((manager) => applyUpdate(manager, update));

  async function stateOf(teamId: string): Promise<object> {
    const [team] = await fixture.query(
      'SELECT name, is_suspended, status, default_workspace_id FROM team WHERE id = $1',
      [teamId],
    );
    const workspaces = await fixture.query(
      'SELECT id, name, is_deleted FROM workspace WHERE team_id = $1 ORDER BY id',
      [teamId],
    );
    return { team, workspaces };
  }

  /** All that was said, each up to three times, in the order of `keys`; `lanes` of them at once. */
  function deliveries(said: readonly TeamUpdate[], keys: readonly number[]): TeamUpdate[] {
    const keyed = said.flatMap((update, index) => {
      const copies = 1 + ((keys[index % keys.length] ?? 0) % 3);
      return Array.from({ length: copies }, (_, copy) => ({
        update,
        key: keys[(index * 7 + copy * 13) % keys.length] ?? 0,
      }));
    });
    return keyed.toSorted((one, other) => one.key - other.key).map(({ update }) => update);
  }

  it('law: ends as the team is at its owner, whatever the order, number and format of what comes of it and of another', async () => {
    const keys = fc.array(fc.nat({ max: 10_000 }), { minLength: 40, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 20 }),
        keys,
        fc.constantFrom(1, 1, 4),
        async (steps, order, lanes) => {
          const [one, other] = [new Owner(), new Owner()];
          for (const [index, each] of steps.entries()) (index % 2 === 0 ? one : other).take(each);
          const delivered = deliveries([...one.said, ...other.said], order);
          for (let first = 0; first < delivered.length; first += lanes) {
            await Promise.all(delivered.slice(first, first + lanes).map(apply));
          }
          expect(await stateOf(one.id)).toEqual(one.state());
          expect(await stateOf(other.id)).toEqual(other.state());
        },
      ),
      runs(60),
    );
  });

  const base = (team_id: string) => ({ team_id, workspaces: [], is_complete: false });
  const described = (id: string) => ({ id, name: 'w', is_deleted: false });
  const isDeleted = async (id: string) =>
    (await fixture.query<{ is_deleted: boolean }>('SELECT is_deleted FROM workspace WHERE id = $1', [id]))[0]
      ?.is_deleted;

  it('does not go back to an older list of all workspaces', async () => {
    const [team_id, id] = [newId(), newId()];
    await apply({ ...base(team_id), revision: 3, is_complete: true });
    await apply({ ...base(team_id), revision: 1, is_complete: true });
    await apply({ ...base(team_id), revision: 2, workspaces: [described(id)] });
    expect(await isDeleted(id)).toBe(true);
  });

  it('applies two updates of one team one after the other', async () => {
    const [team_id, id] = [newId(), newId()];
    await apply({ ...base(team_id), revision: 1 });
    let late: Promise<void> = Promise.resolve();
    await transactions.run(async (manager) => {
      await applyUpdate(manager, { ...base(team_id), revision: 3, is_complete: true });
      late = apply({ ...base(team_id), revision: 2, workspaces: [described(id)] });
      await untilLockWaits(fixture, { unless: late });
    });
    await late;
    expect(await isDeleted(id)).toBe(true);
  });
});
